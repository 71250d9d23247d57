"""Every refusal is counted; the count is printed at the end."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from longspan.errors import CheckpointError
from longspan.formats.weights import open_weights

COUNTS: Counter[str] = Counter(refused=0, executed=0)
NOTES: list[str] = []


@pytest.fixture
def note() -> Callable[[str], None]:
    """Say something at the end, behind the count."""
    return NOTES.append


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The file that every payload would make."""
    return tmp_path / "executed"


@pytest.fixture
def refused(target: Path) -> Callable[[Callable[[], object]], str]:
    """Judge one attempt to load something: it must end in the one error meant for that, which is returned."""

    def judge(attempt: Callable[[], object]) -> str:
        with pytest.raises(CheckpointError) as caught:
            attempt()
        COUNTS["refused"] += 1
        COUNTS["executed"] += target.exists()
        assert not target.exists()
        return str(caught.value)

    return judge


@pytest.fixture
def refused_weights(
    tmp_path: Path, refused: Callable[[Callable[[], object]], str]
) -> Callable[[str, bytes], str]:
    """The same for a file of weights, of which every tensor is asked for."""

    def judge(name: str, data: bytes) -> str:
        (tmp_path / name).write_bytes(data)
        return refused(lambda: dict(open_weights(tmp_path)))

    return judge


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    refused, executed = COUNTS["refused"], COUNTS["executed"]
    words = f"malicious and damaged checkpoints: {refused} attempts refused, {executed} executed"
    if COUNTS["refused"] or NOTES:
        terminalreporter.write_line("; ".join([words, *NOTES] if COUNTS["refused"] else NOTES))
