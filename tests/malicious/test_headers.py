"""A safetensors file is loaded only if its header and its size agree to the byte."""

from collections.abc import Callable
from pathlib import Path

import pytest

from longspan.formats.weights import open_weights
from malicious.headers import GOOD, headers

HEADERS = headers()


def test_without_tricks_the_file_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(GOOD)
    assert open_weights(tmp_path)["a"].shape == (2, 3)


@pytest.mark.parametrize("case", HEADERS)
def test_a_header_with_a_trick_is_refused(case: str, refused_weights: Callable[[str, bytes], str]) -> None:
    refused_weights("model.safetensors", HEADERS[case])
