"""One folder and one tokenizer of each family, built once."""

from pathlib import Path

import pytest

from longspan.text.tokenizer import Tokenizer
from unit.text import tiny


@pytest.fixture(scope="session", params=tiny.FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def folder(family: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write(family, tmp_path_factory.mktemp(family))


@pytest.fixture(scope="session")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer.from_folder(folder)
