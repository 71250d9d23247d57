"""The same conditions for every test: two threads, no randomness that was not asked for."""

import pytest
import torch
from hypothesis import settings

from helpers import without_native

torch.set_num_threads(2)

settings.register_profile("longspan", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("longspan")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--portable", action="store_true", help="run as if the native kernel were not built")


@pytest.fixture(autouse=True)
def _portable(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.config.getoption("--portable"):
        without_native(monkeypatch)
