"""A zip file is loaded only if it is one that torch.save could have written."""

from collections.abc import Callable
from pathlib import Path

import pytest

from longspan.formats.weights import open_weights
from malicious.zips import GOOD, zips

ZIPS = zips()


def test_without_tricks_the_file_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(GOOD)
    assert open_weights(tmp_path)["weight"].shape == (2, 3)


@pytest.mark.parametrize("case", ZIPS)
def test_a_zip_with_a_trick_is_refused(case: str, refused_weights: Callable[[str, bytes], str]) -> None:
    refused_weights("pytorch_model.bin", ZIPS[case])
