"""Every parity test runs twice: with the native kernel, and without it."""

import os
from collections.abc import Iterator

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # before transformers is imported

from conformance.conftest import one_thread
from helpers import without_native

__all__ = ["one_thread"]


@pytest.fixture(autouse=True, params=["native", "portable"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "portable":
        without_native(monkeypatch)
    return str(request.param)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """No log line about padding to the window, no bars of progress."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    yield
    logging.set_verbosity(before)
