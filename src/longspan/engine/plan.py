"""The plan: a pattern compiled for concrete layouts into lists of tiles, all that kernels see of it."""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from longspan.engine.build import build
from longspan.engine.explain import explain
from longspan.engine.labels import Labels
from longspan.engine.tiling import TILE
from longspan.errors import InputError, bad, whole
from longspan.html import table
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.shapes import BoolArray, IntArray

GROUP = 6
"""Rows that the native kernel computes together: it trims a masked tile to the keys that a group needs."""


MOST_ROWS = 2**31 - 1
"""Row numbers are int32, and so are the numbers of tiles and entries; offsets into tensors have 64 bits."""


class PlanArrays(NamedTuple):
    """A plan as the kernels see it: contiguous int32 tensors, masks int64."""

    head_class: Tensor
    "[H] the class of each head; heads of one class have equal patterns."
    class_start: Tensor
    "[C + 1] query tiles of class c: class_start[c] up to class_start[c + 1]."
    q_rows: Tensor
    "[QT, 64] query rows, -1 after the last; each class holds every query row exactly once."
    k_rows: Tensor
    "[KT, 64] existing key rows, -1 after the last."
    entry_start: Tensor
    "[QT + 1] entries of query tile t: entry_start[t] up to entry_start[t + 1], the nearest key tile first."
    entries: Tensor
    "[E, 4] key tile; mask, or -1 if every real pair is allowed; multiplicity m; label tile, or -1."
    masks: Tensor
    "[M, 64] bit j of masks[x][i] says that query i of the tile sees key j, m times."
    label_tiles: Tensor
    "[LT, 64, 64] ranks of the pairs' labels in the class's list."
    label_kind: Tensor
    """[LT] 1: a ramp, rank[i][j] = rank[i][0] + j, where pairs that are not allowed may have ranks up to 64
    outside the list; 0: any ranks, all inside the list."""
    label_start: Tensor
    "[C + 1] where each class's list of labels begins in label_list."
    label_list: Tensor
    "The labels that each class uses, ascending or descending."
    q_sites: Tensor
    "[Nq, 2] document and position of each query."
    k_positions: Tensor
    "[Nk]"

    @property
    def nbytes(self) -> int:
        """The memory of all arrays."""
        return sum(array.nbytes for array in self)

    def check(self, queries: int, keys: int, heads: int) -> "PlanArrays":
        """The arrays themselves if their shapes fit together; what kernels read is never taken on trust."""
        classes = max(self.class_start.numel(), 1)
        lengths = {
            "head_class": heads,
            "class_start": classes,
            "entry_start": _length(self.q_rows) + 1,
            "label_kind": _length(self.label_tiles),
            "label_start": classes,
            "q_sites": queries,
            "k_positions": keys,
        }
        for name, array in self._asdict().items():
            dtype, row = array_format(name)
            shape = (lengths.get(name, _length(array)), *row)
            if array.shape != shape or array.dtype != dtype or not array.is_contiguous():
                value = f"{array.dtype} {tuple(array.shape)}"
                raise bad(
                    name, f"a contiguous {dtype} tensor of shape {shape}", value, "Use a Plan's arrays."
                )
        return self


_ROWS = {
    "q_rows": (TILE,),
    "k_rows": (TILE,),
    "entries": (4,),
    "masks": (TILE,),
    "label_tiles": (TILE, TILE),
    "q_sites": (2,),
}


def array_format(name: str) -> tuple[torch.dtype, tuple[int, ...]]:
    """The dtype of one of the PlanArrays and the shape of its rows; the native core must agree."""
    return torch.int64 if name == "masks" else torch.int32, _ROWS.get(name, ())


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What `plan` returns; give it to `attention` as often as you like."""

    pattern: Pattern
    queries: Layout
    keys: Layout
    heads: int
    labels: Labels | None
    arrays: PlanArrays
    shares_keys: bool = False
    "Whether a key row may belong to several documents: see `gathered`."
    _moved: dict[torch.device, PlanArrays] = field(default_factory=dict)
    _parts: "dict[int, list[tuple[slice, Plan]]]" = field(default_factory=dict)
    "What engine/split.py made of it."

    def to(self, device: torch.device | str) -> PlanArrays:
        """The arrays on a device, moved there on first use."""
        where = torch.device(device)
        if where.type == "cpu":
            return self.arrays
        if where not in self._moved:
            with torch.inference_mode(False):
                self._moved[where] = PlanArrays(*(array.to(where) for array in self.arrays))
        return self._moved[where]

    def gathered(self, rows: IntArray, size: int) -> "Plan":
        """The same plan for keys stored elsewhere: key row i is row rows[i] of a tensor of `size` rows.

        A row may belong to several documents, so that texts with a common prefix share its keys, and at the
        end of a document it may be -1, for none. Such a plan cannot be differentiated.

        >>> from longspan.patterns import Full
        >>> cross = plan(Full(), Layout.packed([1, 1]), Layout.packed([2, 2]), heads=1)
        >>> cross.gathered(np.array([0, 1, 0, 2]), 3).arrays.k_rows[:, :2].tolist()
        [[0, 1], [0, 2]]
        """
        if rows.shape != (self.keys.size,) or (rows.size and not -1 <= rows.min() <= rows.max() < size):
            raise bad("rows", f"{self.keys.size} row numbers below {size}, or -1", rows)
        table = np.append(rows, -1)  # padding (-1) finds the last
        tiles = table[self.arrays.k_rows.numpy()]
        if np.any(tiles[:, :1] < 0) or np.any((tiles[:, 1:] >= 0) & (tiles[:, :-1] < 0)):
            raise bad("rows", f"-1 only after a document's last row, and less than {TILE} times", rows)
        positions = np.zeros(size + 1, np.int32)  # rows of -1 write to the last
        positions[rows] = self.keys.sites.position
        moved = {"k_rows": tiles, "k_positions": positions[:size]}
        arrays = self.arrays._replace(**{name: _tensor(name, array) for name, array in moved.items()})
        return replace(self, arrays=arrays, shares_keys=True, _moved={})

    @property
    def label_count(self) -> int | None:
        """How many labels pairs may have; None: they have none."""
        return None if self.labels is None else self.labels.size

    @cached_property
    def pairs_allowed(self) -> int:
        """Pairs of a query and a key that may attend, summed over the heads."""
        return self._pairs(_seen(self.arrays.masks).sum(axis=2))

    @cached_property
    def pairs_computed(self) -> int:
        """Pairs that a kernel computes: it trims masked tiles by groups of rows (6 with AVX-512, else 4)."""
        groups = np.arange(0, TILE, GROUP)
        needed = np.logical_or.reduceat(_seen(self.arrays.masks), groups, axis=1)  # -> (M, 11, 64)
        width = TILE - needed[:, :, ::-1].argmax(axis=2) - needed.argmax(axis=2)
        width[~needed.any(axis=2)] = 0
        return self._pairs(np.repeat(width, np.diff(groups, append=TILE), axis=1))

    @cached_property
    def pairs_dense(self) -> int:
        """Pairs that full attention inside each document would take, over all heads."""
        sites = self.queries.sites, self.keys.sites
        rows = [np.bincount(s.document[s.exists], minlength=self.queries.documents) for s in sites]
        return int(rows[0] @ rows[1]) * self.heads

    def explain(self, dtype: torch.dtype = torch.float32, device: torch.device | str = "cpu") -> str:
        """The plan in words: classes, tiles, pairs, memory, and which backend would run."""
        return explain(self, dtype, torch.device(device))

    def _pairs(self, widths: IntArray) -> int:
        """Pairs over all heads, where row i of a tile with mask x counts as widths[x][i] pairs."""
        a = self.arrays
        rows, keys = (np.count_nonzero(table.numpy() >= 0, axis=1) for table in (a.q_rows, a.k_rows))
        key, mask, *_ = a.entries.numpy().T
        tile = np.repeat(np.arange(rows.size), np.diff(a.entry_start.numpy()))
        upto = np.cumsum(np.pad(widths, ((0, 1), (1, 0))), axis=1)  # (M, 64) -> (M + 1, 65)
        pairs = np.where(mask < 0, rows[tile] * keys[key], upto[mask, rows[tile]])
        heads = np.bincount(a.head_class.numpy())  # of each class
        return int(np.sum(pairs * np.repeat(heads, np.diff(a.class_start.numpy()))[tile]))

    def _repr_html_(self) -> str:
        keys = "" if self.keys == self.queries else f" × {self.keys.size:,}"
        share = self.pairs_allowed / max(self.pairs_dense, 1)
        facts = [
            ("pattern", self.pattern),
            ("rows", f"{self.queries.size:,}{keys}"),
            ("heads", self.heads),
            ("pairs", f"{self.pairs_allowed:,}, {share:.1%} of those of full attention"),
            ("memory", f"{self.arrays.nbytes / 2**10:,.0f} KB"),
        ]
        return table("Plan", facts)

    def __repr__(self) -> str:
        keys = "" if self.keys == self.queries else f" x {self.keys.size}"
        return f"Plan({self.pattern!r}, {self.queries.size}{keys} rows, {self.heads} heads)"


def plan(
    pattern: Pattern, queries: Layout, keys: Layout | None = None, *, heads: int, labels: Labels | None = None
) -> Plan:
    """Compile a pattern for the rows of queries and keys (the same if None); equal arguments give one plan.

    >>> from longspan.patterns import Window
    >>> plan(Window(2), Layout.packed([100]), heads=4)
    Plan(Window(2), 100 rows, 4 heads)
    """
    try:
        return _plan(pattern, queries, queries if keys is None else keys, heads, cast(Hashable, labels))
    except TypeError as error:
        if "unhashable" not in str(error):
            raise
        repair = "Make patterns and labels frozen dataclasses."
        raise InputError(f"The arguments of `plan` must be hashable, but: {error}. {repair}") from None


@lru_cache(maxsize=64)
def _plan(pattern: Pattern, queries: Layout, keys: Layout, heads: int, labels: Labels | None) -> Plan:
    if not isinstance(pattern, Pattern):
        raise bad("pattern", "a pattern, such as Window(256)", pattern)
    for name, layout in (("queries", queries), ("keys", keys)):
        if not isinstance(layout, Layout):
            raise bad(name, "a Layout", layout, "For one document of n tokens write Layout.packed([n]).")
        if layout.size > MOST_ROWS:
            raise bad(name, f"of at most {MOST_ROWS:,} rows", layout.size, "Plan some documents at a time.")
    if queries.documents != keys.documents:
        raise bad(
            "keys",
            f"of the same documents as `queries`, which hold {queries.documents}",
            f"{keys.documents} documents",
            "Document d of the queries meets document d of the keys; give an absent one length 0.",
        )
    heads = whole("heads", heads, 1)
    if pattern.heads_declared not in (None, heads):
        repair = "Give the pattern one value, or one for each head."
        raise bad("heads", f"{pattern.heads_declared}, as many as the pattern lists", heads, repair)
    with _disable_current_modes():  # a plan made while a graph is traced is cached like any other
        arrays = {name: _tensor(name, a) for name, a in build(pattern, queries, keys, heads, labels).items()}
    return Plan(pattern, queries, keys, heads, labels, PlanArrays(**arrays))


def _length(array: Tensor) -> int:
    return array.shape[:1].numel()


def _tensor(name: str, array: npt.NDArray[np.generic]) -> Tensor:
    dtype = np.int64 if array_format(name)[0] == torch.int64 else np.int32
    if dtype == np.int32 and array.dtype.itemsize > 4 and array.size and array.max() > MOST_ROWS:
        raise bad("plan", f"of at most {MOST_ROWS:,} tiles and entries", int(array.max()), "Plan fewer rows.")
    with torch.inference_mode(False):  # the plan is cached and may be trained with later
        return torch.from_numpy(np.array(array, dtype, order="C"))


def _seen(masks: Tensor) -> BoolArray:
    """(M, 64) words -> (M, 64, 64): which pairs the masks allow."""
    octets = masks.numpy().astype("<i8")[:, :, None].view(np.uint8)
    return np.unpackbits(octets, axis=2, bitorder="little").view(bool)
