"""A zip file is loaded only if it is one that torch.save could have written."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from longspan.formats.weights import open_weights
from malicious.zips import GOOD, zips

ZIPS = zips()
TORCH_READS = {
    *("a bomb", "a compressed pickle", "compressed in one header only", "encrypted in one header only"),
    *("two pickles", "two storages of one name", "a name that goes up", "a folder that goes up"),
    *("a folder below", "a storage that is not a number", "a Python file", "a directory", "a comment"),
    *("a name that differs", "bytes behind the end", "another file before it", "60,000 members"),
    *("members on top of each other", "a member that begins in the directory", "a storage too small"),
    *("a storage too large", "numbers in the other order", "a pickle of 9 MB"),
    "a pickle with something behind it",
}
"""What torch.load reads."""


def test_without_tricks_the_file_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(GOOD)
    assert open_weights(tmp_path)["weight"].shape == (2, 3)


@pytest.mark.parametrize("case", ZIPS)
def test_a_zip_with_a_trick_is_refused(case: str, refused_weights: Callable[[str, bytes], str]) -> None:
    refused_weights("pytorch_model.bin", ZIPS[case])


def test_torch_alone_refuses_the_rest_only(tmp_path: Path) -> None:
    path, read = tmp_path / "pytorch_model.bin", set()
    for case, data in ZIPS.items():
        path.write_bytes(data)
        try:
            torch.load(path, weights_only=True, mmap=True)
        except Exception:
            continue
        read.add(case)
    assert read == TORCH_READS
