"""What the rows of a tensor are: documents, positions, marks. Patterns read nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from longspan import html
from longspan.errors import FARTHEST, InputError, bad, whole
from longspan.shapes import BoolArray, IntArray
from longspan.site import Site as Site
from longspan.site import Tags


@dataclass(frozen=True, eq=False, repr=False)
class Layout:
    """The rows of a tensor, immutable, compared and hashed by value; rows need not be sorted.

    >>> Layout.packed([5, 3], marked=[[0], [0, 2]])
    Layout(8 rows, documents of 5 and 3, 3 marked)
    """

    sites: Site
    lengths: IntArray
    default_marks: bool = False
    "Nobody has said which rows are marked, so a model marks those that suit its task."

    def __post_init__(self) -> None:
        for column in (*self.sites.columns, *self.sites.tags.values(), self.lengths):
            column.setflags(write=False)

    @staticmethod
    def packed(
        lengths: Iterable[int],
        *,
        marked: Sequence[Iterable[int]] | None = None,
        start: int | Sequence[int] | None = None,
        tags: Mapping[str, npt.ArrayLike] | None = None,
    ) -> "Layout":
        """Documents end to end; `marked` lists indices inside each document, `start` its first position.

        A model marks what suits its task if `marked` is None; an empty list marks nothing in its document.
        """
        counts = [whole("lengths", n, 0) for n in lengths]
        starts = _starts(start, len(counts))
        if counts and max(s + n for s, n in zip(starts, counts, strict=True)) > FARTHEST:
            raise bad("lengths", f"at most {FARTHEST} positions", max(counts), "Split the document.")
        size = sum(counts)
        document = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        first_row = np.cumsum([0, *counts])[:-1]
        shift = np.asarray(starts, np.int64) - first_row
        position = (np.arange(size) + shift[document]).astype(np.int32) if size else np.zeros(0, np.int32)
        flags = np.zeros(size, bool)
        flags[_marked_rows(marked, counts, first_row)] = True
        length = np.asarray(starts, np.int32) + np.asarray(counts, np.int32)
        exists = np.ones(size, bool)
        site = Site(position, position, document, length[document], flags, exists, _tags(tags, size))
        return Layout(site, length, default_marks=marked is None)

    @staticmethod
    def padded(
        mask: npt.ArrayLike,
        *,
        marked: npt.ArrayLike | None = None,
        tags: Mapping[str, npt.ArrayLike] | None = None,
    ) -> "Layout":
        """The B * L flattened rows of a (B, L) batch; a masked column keeps its place but does not exist.

        `marked` (B, L) says which are marked; if None, a model marks what suits its task.
        """
        exists = _batch_mask("mask", mask)
        batch, width = exists.shape
        flags = np.zeros_like(exists) if marked is None else _batch_mask("marked", marked)
        if flags.shape != exists.shape:
            raise bad("marked", f"of shape {exists.shape} like `mask`", flags.shape)
        column = np.arange(width, dtype=np.int32)
        length = np.max((column + 1) * exists, axis=1, initial=0).astype(np.int32)
        position = np.tile(column, batch)
        document = np.repeat(np.arange(batch, dtype=np.int32), width)
        exists, flags = exists.reshape(-1).copy(), (flags & exists).reshape(-1)  # (B, L) -> (B * L,)
        site = Site(position, position, document, length[document], flags, exists, _tags(tags, exists.size))
        return Layout(site, length, default_marks=marked is None)

    def take(self, rows: npt.ArrayLike) -> "Layout":
        """The given rows alone, in the given order, each at its old place.

        >>> layout = Layout.packed([5, 3], marked=[[0], [0, 2]])
        >>> layout.take(layout.marked_rows)
        Layout(3 rows, documents of 5 and 3, 3 marked)
        """
        chosen = np.asarray(rows)
        if chosen.size == 0:
            chosen = chosen.astype(np.int64)
        if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
            raise bad("rows", "a list of row numbers", rows, "Turn a mask into rows by np.flatnonzero(mask).")
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < self.size:
            culprit = int(chosen.min() if chosen.min() < 0 else chosen.max())
            raise bad("rows", f"row numbers from 0 to {self.size - 1}", culprit)
        return Layout(self.sites[chosen], self.lengths, self.default_marks)

    def pool(self, kernel: int, stride: int) -> "Layout":
        """Pooled slots: ceil(n / stride) per document, on a grid counted from its first row.

        Slot j covers the `kernel` rows from j * stride - (kernel - stride) // 2 on, as far as they lie in the
        document. Its position is the center, its `last` the last token covered; it exists if any one does.

        >>> slots = Layout.packed([10]).pool(kernel=5, stride=4).sites
        >>> slots.position.tolist(), slots.last.tolist()
        ([2, 6, 9], [4, 8, 9])
        """
        stride = whole("stride", stride, 1)
        kernel = whole("kernel", kernel, stride, "Every token must fall into a slot.")
        site = self.sites
        rows = np.bincount(site.document, minlength=self.documents)
        row0 = np.cumsum(rows) - rows
        self._require_whole_documents(row0)
        slots = -(-rows // stride)
        document = np.repeat(np.arange(self.documents, dtype=np.int32), slots)
        index = np.arange(document.size) - (np.cumsum(slots) - slots)[document]
        first = index * stride - (kernel - stride) // 2
        start = np.append(site.position, 0)[row0][document]
        stop = self.lengths[document] - start
        # A slot beyond the document's end (padding) keeps its own place; others end with the document.
        end = np.where(first < stop, stop, rows[document]) - 1
        last = np.minimum(first + kernel - 1, end)
        center = np.clip(first + (kernel - 1) // 2, 0, end)
        alive = np.append(0, np.cumsum(site.exists))  # (N,) -> (N + 1,): differences count existing rows
        base = row0[document]
        exists = alive[base + last + 1] > alive[base + np.maximum(first, 0)]
        position, last = (start + center).astype(np.int32), (start + last).astype(np.int32)
        unmarked = np.zeros(document.size, bool)
        return Layout(Site(position, last, document, self.lengths[document], unmarked, exists), self.lengths)

    @staticmethod
    def join(a: "Layout", b: "Layout") -> "Layout":
        """The rows of `a`, then the rows of `b`, of the same documents: as torch.cat joins their tensors."""
        if a.documents != b.documents:
            raise InputError(
                f"`a` and `b` must hold the same documents, but hold {a.documents} and {b.documents}. "
                "Give both layouts one entry per document, with length 0 where there is nothing."
            )
        x, y = a.sites, b.sites
        lengths = np.maximum(a.lengths, b.lengths)
        tags = {name: _joined_tag(a, b, name) for name in sorted({*x.tags, *y.tags})}
        document = np.concatenate([x.document, y.document])
        sites = Site(
            np.concatenate([x.position, y.position]),
            np.concatenate([x.last, y.last]),
            document,
            lengths[document],
            np.concatenate([x.marked, y.marked]),
            np.concatenate([x.exists, y.exists]),
            tags,
        )
        return Layout(sites, lengths)

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.sites.position.size

    @property
    def documents(self) -> int:
        """The number of documents."""
        return self.lengths.size

    @cached_property
    def marked_rows(self) -> IntArray:
        """The marked rows, in row order."""
        return np.flatnonzero(self.sites.marked)

    @cached_property
    def first_marked(self) -> "Layout":
        """The same rows, of which the first of each document is marked and no other.

        >>> Layout.packed([5, 3]).first_marked
        Layout(8 rows, documents of 5 and 3, 2 marked)
        """
        rows = np.flatnonzero(self.sites.exists)
        _, first = np.unique(self.sites.document[rows], return_index=True)
        marked = np.zeros(self.size, bool)
        marked[rows[first]] = True
        return Layout(replace(self.sites, marked=marked), self.lengths)

    @cached_property
    def digest(self) -> bytes:
        """What equality and hash compare: a fingerprint of every column."""
        site, fingerprint = self.sites, blake2b(bytes([self.default_marks]), digest_size=16)
        for column in (self.lengths, site.position, site.last, site.document, site.marked, site.exists):
            fingerprint.update(column.tobytes() + b"|")
        for name in sorted(site.tags):
            fingerprint.update(f"{name}|".encode() + site.tags[name].tobytes())
        return fingerprint.digest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Layout) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def _repr_html_(self) -> str:
        shown = range(min(self.documents, html.MOST_BARS))
        marked = self.sites[self.marked_rows]
        return html.bars(
            repr(self), self.lengths.tolist(), [marked.position[marked.document == d].tolist() for d in shown]
        )

    def __repr__(self) -> str:
        shown = [str(n) for n in self.lengths[:4]] + (["..."] if self.documents > 5 else [])
        shown += [str(self.lengths[-1])] if self.documents > 4 else []
        names = " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
        kind = f"{'document' if self.documents == 1 else 'documents'} of {names}" if shown else "no documents"
        numbers = {"marked": self.marked_rows.size, "absent": np.count_nonzero(~self.sites.exists)}
        extras = [f"{number} {name}" for name, number in numbers.items() if number]
        return f"Layout({', '.join([f'{self.size} rows', kind, *extras])})"

    def _require_whole_documents(self, row0: IntArray) -> None:
        """Pooling runs along whole documents: sorted, each row one position after the one before."""
        site = self.sites
        follows = np.diff(site.position) == 1
        opens = np.zeros(self.size + 1, bool)
        opens[row0] = True
        if np.any(np.diff(site.document) < 0) or np.any(~follows & ~opens[1:-1]):
            raise InputError(
                "`pool` must be given whole documents in order, but these rows have gaps or are shuffled. "
                "Pool the layout before take() or join()."
            )


def require(layout: object, name: str = "layout") -> Layout:
    """`layout` itself if it is one, else the error that says what it is."""
    if isinstance(layout, Layout):
        return layout
    shape = getattr(layout, "shape", None)
    kind = type(layout).__name__
    value = "None" if layout is None else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
    value += "" if shape is None else f" of shape {tuple(shape)}"
    repair = "Use Layout.packed([...]), the lengths of the documents, or Layout.padded(mask)."
    raise InputError(f"`{name}` must be a Layout, but is {value}. {repair}")


def _starts(start: int | Sequence[int] | None, documents: int) -> list[int]:
    if start is None or not isinstance(start, (Sequence, np.ndarray)):
        return [whole("start", start or 0, 0)] * documents
    if len(start) != documents:
        raise bad("start", f"one number or one for each of the {documents} documents", list(start))
    return [whole("start", s, 0) for s in start]


def _marked_rows(
    marked: Sequence[Iterable[int]] | None, counts: Sequence[int], first_row: IntArray
) -> npt.NDArray[np.int64]:
    """Row numbers of marked tokens given per document as indices inside the document."""
    if marked is None:
        return np.zeros(0, np.int64)
    if len(marked) != len(counts):
        raise bad("marked", f"one list for each of the {len(counts)} documents", marked, "Use [] for none.")
    rows = []
    for document, (indices, count) in enumerate(zip(marked, counts, strict=True)):
        if not isinstance(indices, Iterable):
            raise bad(
                "marked", "one list of indices per document", marked, "For one document write marked=[[0]]."
            )
        for index in indices:
            if whole("marked", index, 0) >= count:
                name, highest = f"marked[{document}]", f"less than the document's length {count}"
                raise bad(name, highest, index, "Count from the document's first row, not from the batch's.")
            rows.append(int(first_row[document]) + int(index))
    return np.asarray(rows, np.int64)


def _batch_mask(name: str, mask: npt.ArrayLike) -> BoolArray:
    array = np.asarray(mask)
    if array.dtype != np.bool_:
        raise bad(name, "boolean", array.dtype.name, f"Use {name}.bool() or `{name} != 0`.")
    if array.ndim != 2:
        raise bad(name, "of shape (B, L)", array.shape)
    return array


def _tags(tags: Mapping[str, npt.ArrayLike] | None, size: int) -> Tags:
    columns = Tags()
    for name, values in (tags or {}).items():
        column = np.asarray(values).reshape(-1)
        if column.size and column.dtype.kind not in "iub":
            raise bad(f"tags[{name!r}]", "whole numbers", column.dtype.name)
        if column.size != size:
            raise bad(f"tags[{name!r}]", f"one number for each of the {size} rows", f"{column.size} numbers")
        columns[name] = column.astype(np.int32)
    return columns


def _joined_tag(a: Layout, b: Layout, name: str) -> IntArray:
    return np.concatenate([layout.sites.tags.get(name, np.zeros(layout.size, np.int32)) for layout in (a, b)])
