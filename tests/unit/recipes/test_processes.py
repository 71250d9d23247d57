"""Recipes under torchrun: two processes end with the model that one makes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch import Tensor

import longspan
from longspan.recipes.char_lm.load import load_char_lm
from longspan.training.log import read_log
from unit.corpus.small import corpus
from unit.recipes.working import TRAINED
from unit.tasks.tiny import reader

RECIPES = ("finetune", "pretrain", "char-lm")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture
def data(tmp_path: Path) -> dict[str, Path]:
    """What each recipe reads."""
    (tmp_path / "text.txt").write_text("Und so weiter: das ist ein Satz. " * 60)
    reader("longformer", "classify", labels=2).save(tmp_path / "model")
    made = longspan.load(tmp_path / "model", labels=["north", "south"])
    made.save(tmp_path / "model")
    return {
        "finetune": tmp_path / "model",
        "pretrain": corpus(tmp_path, 12).folder,
        "char-lm": tmp_path / "text.txt",
    }


def by_two(recipe: str, out: Path, data: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    words = [*TORCHRUN, "-m", "unit.recipes.working", recipe, str(out), str(data)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def weights(recipe: str, out: Path) -> dict[str, Tensor]:
    model = load_char_lm(out) if recipe == "char-lm" else longspan.load(out).model
    found: dict[str, Tensor] = model.state_dict()
    return found


def alike(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(one[name].allclose(other[name], rtol=1e-4, atol=1e-5) for name in one)


@pytest.mark.parametrize("recipe", RECIPES)
def test_two_processes_make_the_model_of_one(recipe: str, tmp_path: Path, data: dict[str, Path]) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    TRAINED[recipe](one, data[recipe])
    by_two(recipe, two, data[recipe])
    assert alike(weights(recipe, one), weights(recipe, two))
    assert "torchrun --nproc-per-node 2 -m unit.recipes.working" in (two / "README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_so_do_two_that_share_its_weights(recipe: str, tmp_path: Path, data: dict[str, Path]) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    TRAINED[recipe](one, data[recipe])
    by_two(f"{recipe}, shared", two, data[recipe])
    assert alike(weights(recipe, one), weights(recipe, two))


@pytest.mark.parametrize("recipe", ["pretrain", pytest.param("char-lm", marks=pytest.mark.slow)])
def test_processes_with_minutes_take_the_same_steps(
    recipe: str, tmp_path: Path, data: dict[str, Path]
) -> None:
    by_two(f"{recipe} for minutes", tmp_path / "run", data[recipe])
    (log,) = (tmp_path / "run").glob("run") if recipe == "pretrain" else (tmp_path / "run").glob("phase-2")
    assert read_log(log)[-1]["step"] >= 1
