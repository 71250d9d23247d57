"""Documents end to end in batches of a token budget, and windows over a document that is too long."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

import numpy as np
import torch

from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.shapes import IntArray

Numbers = Sequence[int] | IntArray | torch.Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """Documents end to end, without padding."""

    ids: torch.Tensor
    "(N,) int64"
    layout: Layout
    token_types: torch.Tensor | None
    "(N,) int64, or None where the model has none."
    index: tuple[int, ...]
    "Which of the given documents each document of the layout is."
    labels: "Labels" = None
    "What the loss of the task takes, if there are any."
    texts: Layout | None = None
    "The layout of labels that are texts of their own."

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device."""
        types = None if self.token_types is None else self.token_types.to(device)
        labels = self.labels.to(device) if isinstance(self.labels, (torch.Tensor, Batch)) else self.labels
        return replace(self, ids=self.ids.to(device), token_types=types, labels=labels)


Labels = torch.Tensor | Batch | tuple[list[int], torch.Tensor] | list[list[tuple[int, int]]] | None
"""A tensor; for pairs of texts the other ones; for choices how many each question has, and the right ones;
for answers the spans (first, last token) of each document."""


def pack(
    documents: Sequence[Numbers],
    *,
    budget: int = 8192,
    marked: Sequence[Iterable[int]] | None = None,
    token_types: Sequence[Numbers] | None = None,
    tags: Sequence[Mapping[str, IntArray]] | None = None,
    more: int | Sequence[int] = 0,
    together: Sequence[int] | None = None,
) -> list[Batch]:
    """Batches of at most `budget` tokens, longest documents first; a longer document goes alone.

    Documents of like length share a batch, so that the batches do like work. `marked` lists each document's
    global tokens, `tags` its columns of the layout, the same ones for all. Each takes `more` tokens of the
    budget beside its own, the same for all or one number for each. Neighbours with the same number in
    `together` share a batch, in their order.

    >>> [batch.index for batch in pack([[5] * 3, [6] * 9, [7] * 4, [8] * 2], budget=9)]
    [(1,), (2, 0, 3)]
    """
    budget = whole("budget", budget, 1)
    if len(documents) == 0:
        raise bad("documents", "a list of at least one document", documents)
    ids = [_numbers(f"documents[{i}]", document) for i, document in enumerate(documents)]
    for i, document in enumerate(ids):
        if document.size == 0:
            raise bad(f"documents[{i}]", "at least one token long", [], "Special tokens alone are enough.")
    types = None if token_types is None else _types(token_types, ids)
    if marked is not None and len(marked) != len(ids):
        raise bad("marked", f"one list for each of the {len(ids)} documents", f"{len(marked)} lists")
    batches = []
    beside = [more] * len(ids) if isinstance(more, int) else more
    sizes = [document.size + own for document, own in zip(ids, beside, strict=True)]
    for index in _groups(sizes, budget, range(len(ids)) if together is None else together):
        columns = None
        if tags is not None:
            columns = {name: np.concatenate([_column(tags, i, name) for i in index]) for name in tags[0]}
        own_marks = None if marked is None else [marked[i] for i in index]
        layout = Layout.packed([ids[i].size for i in index], marked=own_marks, tags=columns)
        column = None if types is None else _joined([types[i] for i in index])
        batches.append(Batch(_joined([ids[i] for i in index]), layout, column, tuple(index)))
    return batches


def windows(n: int, limit: int, overlap: int = 0) -> list[tuple[int, int]]:
    """Stretches [start, stop) of at most `limit` tokens that cover n tokens.

    Neighbours share `overlap` tokens, the last two perhaps more, since the last window ends with the document
    and is as long as the others.

    >>> windows(10, limit=4, overlap=1)
    [(0, 4), (3, 7), (6, 10)]
    >>> windows(9, limit=4, overlap=1)
    [(0, 4), (3, 7), (5, 9)]
    """
    n, limit = whole("n", n, 1), whole("limit", limit, 1)
    overlap = whole("overlap", overlap, 0)
    if overlap >= limit:
        raise bad("overlap", f"less than the window's {limit} tokens", overlap)
    if n <= limit:
        return [(0, n)]
    starts = [*range(0, n - limit, limit - overlap), n - limit]
    return [(start, start + limit) for start in starts]


def _groups(lengths: Sequence[int], budget: int, together: Sequence[int]) -> list[list[int]]:
    """Document numbers by descending length, cut where the budget is full."""
    units = [[i for i, _ in unit] for _, unit in groupby(enumerate(together), key=itemgetter(1))]
    sizes = [sum(lengths[i] for i in unit) for unit in units]
    groups: list[list[int]] = []
    room = 0
    for number in sorted(range(len(units)), key=lambda number: (-sizes[number], number)):
        if not groups or sizes[number] > room:
            groups.append([])
            room = budget
        groups[-1].extend(units[number])
        room -= sizes[number]
    return groups


def _column(tags: Sequence[Mapping[str, IntArray]], document: int, name: str) -> IntArray:
    if name not in tags[document]:
        raise bad(f"tags[{document}]", f"a dict with {', '.join(tags[0])}, as tags[0]", list(tags[document]))
    return tags[document][name]


def _numbers(name: str, values: Numbers) -> IntArray:
    array = np.asarray(values)
    if array.ndim == 1 and array.size == 0:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise bad(name, "a list of whole numbers", f"{array.dtype.name} of shape {array.shape}")
    if array.min() < 0:
        raise bad(name, "a list of ids from 0", int(array.min()))
    return array.astype(np.int64)


def _types(types: Sequence[Numbers], ids: Sequence[IntArray]) -> list[IntArray]:
    columns = [_numbers(f"token_types[{i}]", column) for i, column in enumerate(types)]
    if [column.size for column in columns] != [document.size for document in ids]:
        raise bad("token_types", "of the same lengths as `documents`", [column.size for column in columns])
    return columns


def _joined(columns: Sequence[IntArray]) -> torch.Tensor:
    return torch.from_numpy(np.concatenate(columns))
