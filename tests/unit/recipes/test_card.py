"""The command on a card is one that can be typed."""

import sys
from types import SimpleNamespace

import pytest

from longspan.recipes.card import this_command

TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1"}
PACKAGE = "/usr/lib/python3/site-packages/longspan/__main__.py"


@pytest.mark.parametrize(
    ("program", "module", "environment", "command"),
    [
        ("/usr/bin/longspan", None, {}, "longspan train 'a b'"),
        (PACKAGE, "longspan.__main__", {}, "longspan train 'a b'"),
        (PACKAGE, "longspan.__main__", TORCHRUN, "torchrun --nproc-per-node 2 -m longspan train 'a b'"),
        ("finetune.py", None, {}, "python finetune.py train 'a b'"),
        ("finetune.py", None, TORCHRUN, "torchrun --nproc-per-node 2 finetune.py train 'a b'"),
        (
            "finetune.py",
            None,
            TORCHRUN | {"GROUP_WORLD_SIZE": "3"},
            "torchrun --nnodes 3 --nproc-per-node 2 finetune.py train 'a b'",
        ),
        ("/home/me/tools/train.py", "tools.train", {}, "python -m tools.train train 'a b'"),
        ("", None, {}, "python train 'a b'"),
    ],
)
def test_a_command_is_as_it_is_typed(
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    module: str | None,
    environment: dict[str, str],
    command: str,
) -> None:
    for name in TORCHRUN:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    spec = None if module is None else SimpleNamespace(name=module)
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec)
    monkeypatch.setattr("sys.argv", [program, "train", "a b"])
    assert this_command() == command
