"""The native backend: it runs a core that was compiled for its own plans, and no other."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch

from longspan import native
from longspan.engine.backends.native import Native
from longspan.engine.plan import plan
from longspan.layout import Layout
from longspan.patterns import Window

pytestmark = pytest.mark.skipif(native.core() is None, reason="the native core is not built")

Table = list[tuple[str, int, int]]


@pytest.mark.parametrize(
    "change",
    [
        lambda table: [("heads", 32, 1), *table[1:]],
        lambda table: [table[1], table[0], *table[2:]],
        lambda table: [("head_class", 64, 1), *table[1:]],
        lambda table: [("head_class", 32, 2), *table[1:]],
        lambda table: table[:-1],
        lambda table: [*table, ("more", 32, 1)],
    ],
    ids=["a name", "the order", "a dtype", "a row", "too few", "too many"],
)
def test_a_core_compiled_for_other_plans_is_refused(
    change: Callable[[Table], Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    stale = change(native.load().plan_arrays())
    monkeypatch.setattr(native, "load", lambda: SimpleNamespace(plan_arrays=lambda: stale))
    with pytest.raises(ImportError, match=r"compiled for other plans: array \d+ is .* reinstall longspan"):
        Native()


@pytest.mark.parametrize("name", ["class_start", "entry_start", "label_kind", "label_start"])
def test_the_binding_refuses_arrays_whose_lengths_do_not_fit(name: str) -> None:
    x = torch.zeros(70, 2, 8)
    arrays = plan(Window(3), Layout.packed([70]), heads=2).arrays
    longer = arrays._replace(**{name: torch.zeros(len(getattr(arrays, name)) + 1, dtype=torch.int32)})
    arguments = native.arguments(longer, x, x, x, 1.0, (None, None, None), 0.0, None, None)
    with pytest.raises(ValueError, match=r"_(start|kind) must have .* rows"):
        native.load().forward(*arguments, 0, 0)
