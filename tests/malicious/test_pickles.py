"""No pickle that is more than tensors is loaded, in whichever container it comes."""

import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch

from longspan.formats.weights import open_weights
from malicious import pickles
from malicious.assembler import whole
from malicious.containers import CONTAINERS, MAGIC, SYSTEM, in_legacy, in_zip

HERE = Path("executed")  # cases are named before there is a folder; the tests build them again
CALLS, WAYS = list(pickles.calls(HERE)), list(pickles.ways(HERE))
Judge = Callable[[str, bytes], str]
every_container = pytest.mark.parametrize("container", CONTAINERS)
TORCH_READS = {
    *("call _codecs.encode", "call collections.Counter", "behind the end", "behind the end, unframed"),
    *("a new object of an allowed class", "attributes of a dict", "the class of a dict", "a mark left open"),
    *("two values", "a tensor as key", "a set", "a list", "a number", "a tensor", "numbers as weights"),
    *("numbers as names", "names as weights", "2^61 elements that are one", "12 elements of 6", "65 sizes"),
    *("an empty tensor behind its storage", "a shape that is a list", "hooks", "no hooks", "no memory"),
    *("one argument too many", "a storage of 2^61 elements", "a storage of 2^70 elements"),
    *("a storage of 7 elements", "a storage of 5 elements", "a storage of wider elements"),
    *("a storage described twice", "a quantized storage", "memory that was never written"),
    "a parameter of nothing",
}
"""What torch.load reads in spite of weights_only=True; Longspan's scan and checks refuse it."""
TORCH_STRUGGLES = {
    *("a million lists", "a million marks", "8 GB of zeros"),
    *("a key to hash forever", "a key to hash forever in a call", "a key of nested tuples"),
}
"""What takes torch.load seconds, gigabytes or the whole process."""
IN_A_THREAD = """
import sys, threading, torch
threading.stack_size(1 << 20)
loading = threading.Thread(target=torch.load, args=sys.argv[1:], kwargs={"weights_only": True, "mmap": True})
loading.start()
loading.join()
"""


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


def test_torch_alone_refuses_the_rest_only(target: Path, tmp_path: Path) -> None:
    path, read = tmp_path / "pytorch_model.bin", set()
    cases = pickles.calls(target) | pickles.ways(target) | pickles.exhausting() | pickles.tensors()
    for case in cases.keys() - TORCH_STRUGGLES:
        path.write_bytes(in_zip(cases[case]))
        with warnings.catch_warnings(action="ignore"):
            try:
                torch.load(path, weights_only=True, mmap=True)
            except Exception:
                continue
        read.add(case)
    assert read == TORCH_READS
    assert not target.exists()


def test_torch_alone_hashes_keys_that_double(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(in_zip(whole(pickles.pairs_of_pairs(9), b"}h\x00Ns")))
    (key,) = torch.load(path, weights_only=True, mmap=True)
    for _ in range(9):
        one, key = key
        assert one is key


def test_torch_alone_crashes_on_nested_keys(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(in_zip(pickles.exhausting()["a key of nested tuples"]))
    done = subprocess.run([sys.executable, "-c", IN_A_THREAD, str(path)], capture_output=True)
    assert done.returncode not in (0, 1)


def legacy(
    system: object = SYSTEM, keys: Sequence[object] = ("0",), data: bytes = b"\6" + bytes(31)
) -> bytes:
    """A file from before torch 1.6, around good weights."""
    head = b"".join(pickle.dumps(value, 2) for value in (MAGIC, 1001, system))
    return head + pickles.well_formed().replace(b"tQ", b"NtQ") + pickle.dumps(list(keys), 2) + data


def test_the_old_format_is_read(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(legacy())
    assert torch.equal(open_weights(tmp_path)["weight"], torch.zeros(2, 3))


@pytest.mark.parametrize(
    "file",
    [
        legacy(keys=[], data=b""),  # torch alone would read memory that was never written
        legacy(keys=["0", "0"], data=(b"\6" + bytes(31)) * 2),
        legacy(keys=["1"]),
        legacy(keys=[0]),
        legacy(data=b"\6" + bytes(30)),
        legacy(data=b"\6" + bytes(32)),
        legacy(data=b"\5" + bytes(31)),
        legacy(system={**SYSTEM, "little_endian": False}),
        legacy(system=[]),
    ],
)
def test_the_storages_of_the_old_format_are_those_of_its_tensors(file: bytes, refused_weights: Judge) -> None:
    refused_weights("pytorch_model.bin", file)
