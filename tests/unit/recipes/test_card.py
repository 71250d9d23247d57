"""The command on a card is one that can be typed."""

import pytest

from longspan.recipes.card import this_command

TORCHRUN = {"TORCHELASTIC_RUN_ID": "none", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1"}
MODULE = "/usr/lib/python3/site-packages/longspan/__main__.py"


@pytest.mark.parametrize(
    ("program", "environment", "command"),
    [
        ("/usr/bin/longspan", {}, "longspan train 'a b'"),
        (MODULE, {}, "longspan train 'a b'"),
        (MODULE, TORCHRUN, "torchrun --nproc-per-node 2 -m longspan train 'a b'"),
        ("finetune.py", {}, "python finetune.py train 'a b'"),
        ("finetune.py", TORCHRUN, "torchrun --nproc-per-node 2 finetune.py train 'a b'"),
        (
            "finetune.py",
            TORCHRUN | {"GROUP_WORLD_SIZE": "3"},
            "torchrun --nnodes 3 --nproc-per-node 2 finetune.py train 'a b'",
        ),
        ("/home/me/tools/__main__.py", {}, "python -m tools train 'a b'"),
        ("", {}, "python train 'a b'"),
    ],
)
def test_a_command_is_as_it_is_typed(
    monkeypatch: pytest.MonkeyPatch, program: str, environment: dict[str, str], command: str
) -> None:
    for name in TORCHRUN:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", [program, "train", "a b"])
    assert this_command() == command
