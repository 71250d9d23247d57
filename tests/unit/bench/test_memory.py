import subprocess
from typing import Any

import pytest
import torch

from longspan.bench.memory import MemoryCase, accounted


def child(monkeypatch: pytest.MonkeyPatch, status: int, out: str = "", err: str = "") -> None:
    def fake(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, status, out, err)

    monkeypatch.setattr("subprocess.run", fake)


def test_results_and_log_sum_exps_are_not_extra_memory() -> None:
    out = torch.zeros(10, 12, 64)
    assert accounted("native", 10, (out, out, None)) == 2 * out.nbytes + 10 * 12 * 4


def test_the_projections_of_transformers_are_not_extra_memory() -> None:
    assert accounted("transformers", 10, ()) == 3 * 10 * 768 * 4 + 10 * 12 * 4


def test_the_childs_bytes_are_reported_in_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    child(monkeypatch, 0, "70000000\n")
    (figure,), timings = MemoryCase("long-memory", 131_072, 64.0).measured(rounds=9)
    assert figure.samples == (70.0,)
    assert figure.verdict == "short"
    assert timings == []


def test_a_child_that_fails_gives_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    child(monkeypatch, 1, err="a warning\nnot built\n")
    (figure,), _ = MemoryCase("long-memory", 131_072, 64.0).measured(rounds=9)
    assert figure.verdict == "skipped"
    assert figure.skipped == "not built"
