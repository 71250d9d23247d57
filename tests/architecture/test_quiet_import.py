"""`import longspan` does no work; every public name is loaded when it is first used."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import longspan

QUIET = """
import os, random, sys, threading
environment, state = dict(os.environ), random.getstate()
import longspan, longspan.cli
assert dict(os.environ) == environment, "the environment was written"
assert random.getstate() == state, "a generator was seeded"
assert threading.active_count() == 1, "a thread was started"
loaded = {"torch", "numpy", "longspan._native", "longspan._postings"} & set(sys.modules)
assert not loaded, f"{loaded} imported"
"""

INSIDE = """
import sys
sys.modules["transformers"] = None  # as if it were not installed
import longspan.hf
del sys.modules["transformers"], sys.modules["longspan.hf"]
import longspan.hf
from transformers import AttentionInterface, AttentionMaskInterface
assert all("longspan" in each() for each in (AttentionInterface, AttentionMaskInterface))
loaded = [name for name in sys.modules if name.startswith("transformers.models.") and ".modeling_" in name]
assert not loaded, f"{loaded} imported"
"""


def test_the_name_is_registered_where_there_is_a_transformers_and_no_model_is_imported() -> None:
    subprocess.run([sys.executable, "-c", INSIDE], check=True)


def test_importing_does_no_work() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", QUIET], check=True)


@pytest.mark.parametrize("name", longspan.__all__)
def test_every_public_name_can_be_used(name: str) -> None:
    assert getattr(longspan, name) is not None
    assert name in dir(longspan)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'attentoin'"):
        _ = longspan.attentoin


def test_there_is_one_version() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert longspan.__version__ == project["project"]["version"]
