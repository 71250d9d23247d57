"""What tests share."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from longspan import native
from longspan.engine import backends
from longspan.engine.plan import Plan
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.shapes import IntArray
from longspan.tasks.registry import TASKS, task_of


@contextmanager
def peak_growth() -> Iterator[list[float]]:
    """A list that will hold by how many MB this process grew at most in the meantime."""

    def read(name: str) -> int:
        found = re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())
        assert found is not None
        return int(found[1])

    grown: list[float] = []
    try:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
        before = read("VmRSS")
    except OSError as error:
        pytest.skip(f"the memory of this process cannot be watched: {error}")
    yield grown
    grown.append((read("VmHWM") - before) / 1024)


def dense_counts(plan: Plan) -> IntArray:
    """The plan's arrays read back: (H, Nq, Nk) how often each query counts each key; no pair stands twice."""
    a = plan.arrays
    q_rows, k_rows, masks, entries, starts = (
        x.numpy() for x in (a.q_rows, a.k_rows, a.masks, a.entries, a.entry_start)
    )
    classes = np.zeros((len(a.class_start) - 1, plan.queries.size + 1, plan.keys.size + 1), np.int64)
    for c in range(len(classes)):
        for tile in range(int(a.class_start[c]), int(a.class_start[c + 1])):
            for key, mask, times, _ in entries[starts[tile] : starts[tile + 1]]:
                bits = np.full(64, -1) if mask < 0 else masks[mask]
                seen = (bits[:, None] >> np.arange(64) & 1).astype(bool)  # (64,) -> (64, 64)
                real = (q_rows[tile] >= 0)[:, None] & (k_rows[key] >= 0)
                assert mask < 0 or not np.any(seen & ~real), "a mask allows padding"
                i, j = np.nonzero(seen & real)
                rows = c, q_rows[tile][i], k_rows[key][j]
                assert not classes[rows].any(), "a pair stands in two entries"
                classes[rows] = times
    return classes[a.head_class.numpy(), :-1, :-1]


def true_counts(pattern: Pattern, queries: Layout, keys: Layout, heads: int) -> IntArray:
    """What the pattern says: (H, Nq, Nk), pairs of one document that both exist."""
    q, k = queries.sites[:, None], keys.sites[None, :]
    meet = (q.document == k.document) & q.exists & k.exists
    counts = [np.where(meet, pattern.head(h).count(q, k), 0) for h in range(heads)]
    return np.stack(counts).astype(np.int64)


def without_native(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the native core were not built."""
    monkeypatch.setattr(native, "core", lambda: None)
    kept = {name: place for name, place in backends.BACKENDS.items() if name != "native"}
    monkeypatch.setattr(backends, "BACKENDS", kept)


READING = [task.name for task in TASKS.values() if task.backbones != "decoder"]
"""What an encoder can do."""
WRITING = [task.name for task in TASKS.values() if task.backbones != "encoder"]
"""What a model with a decoder can do."""


def task_name(model: TaskModel) -> str:
    """What a model does."""
    return task_of(model.architecture).name
