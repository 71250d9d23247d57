"""What embeddings and heads read of a layout, as tensors: a compiled graph cannot look into a Layout."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from longspan.errors import bad
from longspan.layout import Layout
from longspan.shapes import BoolArray, IntArray


class Rows(NamedTuple):
    """The rows of a layout in tensors of int64."""

    positions: Tensor
    "(N,)"
    documents: Tensor
    "(N,)"
    exists: Tensor
    "(N,) bool"
    first: Tensor
    "(documents,) the row of each document's first token."
    last: Tensor
    "(documents,) and that of its last one."

    @staticmethod
    def of(layout: Layout, device: torch.device) -> "Rows":
        """The rows of a layout; a document without any has no first one."""
        sites = layout.sites
        first, last = ends(layout)
        columns = sites.position, sites.document, sites.exists, first, last
        return Rows(*(tensor(column, device) for column in columns))


def tensor(column: IntArray | BoolArray, device: torch.device) -> Tensor:
    """A column of a layout on a device, in int64 or bool."""
    kind = np.bool_ if column.dtype == np.bool_ else np.int64
    return torch.from_numpy(column.astype(kind)).to(device)


def positions(places: Layout | Tensor, device: torch.device) -> Tensor:
    """(N,) the positions of a layout's rows, or those that are given."""
    return places if isinstance(places, Tensor) else tensor(places.sites.position, device)


def first_rows(layout: Layout) -> IntArray:
    """The row of each document's first token, (documents,)."""
    rows = np.flatnonzero(layout.sites.exists)
    documents, first = np.unique(layout.sites.document[rows], return_index=True)
    if documents.size != layout.documents:
        raise bad("document", "at least one token long", 0)
    return rows[first]


def ends(layout: Layout) -> tuple[IntArray, IntArray]:
    """The rows of each document's first and last token, (documents,) each."""
    sites, first = layout.sites, first_rows(layout)
    lengths = np.bincount(sites.document[sites.exists], minlength=layout.documents)
    return first, first + lengths - 1
