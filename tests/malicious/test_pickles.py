"""No pickle that is more than tensors is loaded, in whichever container it comes."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from longspan.formats.weights import open_weights
from malicious import pickles
from malicious.containers import CONTAINERS, in_legacy, in_zip

HERE = Path("executed")  # cases are named before there is a folder; the tests build them again
CALLS, WAYS = list(pickles.calls(HERE)), list(pickles.ways(HERE))
Judge = Callable[[str, bytes], str]
every_container = pytest.mark.parametrize("container", CONTAINERS)


@pytest.mark.parametrize("container", [in_zip, in_legacy])
def test_the_containers_hold_good_weights_well(container: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(container(pickles.well_formed()))
    weights = open_weights(tmp_path)
    assert weights.shapes == {"weight": ((2, 3), torch.float32)}
    assert torch.equal(weights["weight"], torch.zeros(2, 3))


@pytest.mark.parametrize(
    "way", ["inst", "obj", "stack global", "stack global of memoised words", "in a state"]
)
def test_the_payloads_are_real(way: str, target: Path) -> None:
    pickle.loads(pickles.ways(target)[way])
    assert target.exists()


@every_container
@pytest.mark.parametrize("case", CALLS)
def test_no_function_is_called(case: str, container: str, target: Path, refused_weights: Judge) -> None:
    words = refused_weights("pytorch_model.bin", CONTAINERS[container](pickles.calls(target)[case]))
    assert container == "bare" or f"it wants to import '{case.removeprefix('call ')}'" in words


@every_container
@pytest.mark.parametrize("case", WAYS)
def test_no_way_leads_to_a_call(case: str, container: str, target: Path, refused_weights: Judge) -> None:
    refused_weights("pytorch_model.bin", CONTAINERS[container](pickles.ways(target)[case]))


@every_container
@pytest.mark.parametrize("case", pickles.exhausting())
def test_nothing_grows_without_end(case: str, container: str, refused_weights: Judge) -> None:
    refused_weights("pytorch_model.bin", CONTAINERS[container](pickles.exhausting()[case]))


@pytest.mark.parametrize("container", ["zip", "legacy"])
@pytest.mark.parametrize("case", pickles.tensors())
def test_a_tensor_lies_in_its_storage(case: str, container: str, refused_weights: Judge) -> None:
    refused_weights("pytorch_model.bin", CONTAINERS[container](pickles.tensors()[case]))
