"""The door to the compiled core: what it does where the core is missing or stale."""

import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch

import longspan
from longspan import native
from longspan.errors import InputError

built = pytest.mark.skipif(native.core() is None, reason="the native core is not built")


@pytest.fixture
def afresh() -> Iterator[None]:
    """The core is loaded again, and once more afterwards."""
    native._loaded.cache_clear()
    yield
    native._loaded.cache_clear()


@pytest.mark.usefixtures("afresh")
def test_without_a_core_nothing_is_served_and_load_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "longspan._native", None)
    monkeypatch.delattr(longspan, "_native", raising=False)
    assert native.core() is None
    assert native.targets() == []
    assert not native.serves_linear(torch.float32)
    with pytest.raises(ImportError, match=r"longspan\._native"):
        native.load()


@built
@pytest.mark.usefixtures("afresh")
def test_a_core_of_another_abi_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "ABI", native.ABI + 1)
    assert native.core() is None
    with pytest.raises(ImportError, match=f"has ABI {native.ABI - 1}, but {native.ABI} is needed; reinstall"):
        native.load()


@built
def test_an_instruction_set_that_this_machine_lacks_is_refused() -> None:
    with (
        pytest.raises(InputError, match=r"`target` must be one of .*, but is 'sse9'"),
        native.force_target("sse9"),
    ):
        pass


def test_words_are_counted_for_sound_arguments_only() -> None:
    postings = pytest.importorskip("longspan._postings", reason="the native core is not built")
    counts = postings.count(["one two", "two"], 64)
    assert len(counts.words) == 2
    groups = np.array([0, 1], np.int32).tobytes()
    counts.merge(groups, 2)
    for group, number in (
        (groups, -1),
        (groups, 1),
        (groups, 3),
        (groups, 2**31 - 1),
        (b"", 0),
        (groups[:5], 2),
    ):
        with pytest.raises(ValueError, match="group"):
            counts.merge(group, number)
    for wrong in (np.array([0, -1], np.int32), np.array([0, 2**31 - 1], np.int32)):
        with pytest.raises(ValueError, match="out of range"):
            counts.merge(wrong.tobytes(), 2)
    for longest in (0, -1, 2**31 - 1):
        with pytest.raises(ValueError, match="longest must be"):
            postings.count(["a"], longest)
    for texts in ([1], [b"a"], [None], 3):
        with pytest.raises(TypeError):
            postings.count(texts, 64)
    for words in ([1], [None]):
        with pytest.raises(TypeError, match="must be a str"):
            postings.stems(words)
    assert postings.count(["\ud800a\U0010ffff"], 64).words == ["a"]
    assert postings.count([], 64).merge(b"", 0) == (b"", b"")
