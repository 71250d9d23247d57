"""The mask that models of transformers pass to their layers: a pattern and two layouts, never n x n flags."""

from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from longspan.engine.plan import Plan, plan
from longspan.errors import InputError, bad
from longspan.hf.mask_functions import Band
from longspan.hf.serving import bits, once
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.shapes import BoolArray, IntArray
from longspan.site import Site

Span = tuple[int, int]
"""How many columns of a batch, and the position of the first."""


class PatternMask:
    """Which keys the queries of a batch may see; the layers of a call share one, and so its plans."""

    ndim = 4  # of the tensor that it stands for: transformers leaves masks of 4 dimensions as they are

    def __init__(
        self, band: Band, batch: int, queries: Span, keys: Span, exists: Tensor | None = None
    ) -> None:
        self.band, self.batch, self.queries, self.keys = band, batch, queries, keys
        self.exists = exists
        "(B, K) which keys are no padding; None: all."
        self._plans: dict[int, Plan] = {}

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """That of the tensor it stands for."""
        return self.batch, 1, self.queries[0], self.keys[0]

    def contiguous(self) -> "PatternMask":
        """Itself: generation asks for it."""
        return self

    def __getitem__(self, index: object) -> "PatternMask":
        raise _changed()

    @classmethod
    def __torch_function__(cls, function: object, *given: object) -> "PatternMask":
        """Any operation of torch that it is given to."""
        raise _changed()

    def plan(self, heads: int) -> Plan:
        """The pairs to compute, made once for equal masks."""
        if heads not in self._plans:
            exists = None if self.exists is None else bits(self.exists)
            segments = self.band.segments
            rows = None if segments is None else segments.numpy().astype(np.int64).tobytes()
            sizes = self.batch, self.queries, self.keys
            self._plans[heads] = once(_plan, self.band.pattern, *sizes, exists, rows, heads)
        return self._plans[heads]

    @cached_property
    def row(self) -> tuple[slice, Tensor | None]:
        """One query per row: the keys around it, and which of these it sees (B, 1, 1, K); None: all."""
        position, (size, first) = self.queries[1], self.keys
        low = 0 if self.band.left is None else position - self.band.left - first
        high = size if self.band.right is None else position + self.band.right + 1 - first
        seen = slice(min(max(low, 0), size), min(max(high, 0), size))
        exists = None if self.exists is None else self.exists[:, seen]
        return seen, None if exists is None or exists.all() else exists[:, None, None]


def _changed() -> InputError:
    return InputError(
        "`attention_mask` must be passed on as it was made, but this model cuts or changes it: "
        'Longspan\'s is no tensor. Use attn_implementation="sdpa" for this model.'
    )


def padding(mask: Tensor | None, keys: Span) -> Tensor | None:
    """Which keys exist (B, K), where `mask` (B, columns) counts from position 0; None: all do."""
    size, first = keys
    if mask is None:
        return None
    if mask.dim() != 2:
        raise bad("attention_mask", "of shape (batch, tokens)", tuple(mask.shape))
    part = mask[:, first : first + size].bool()
    if part.shape[1] < size:
        part = torch.nn.functional.pad(part, (0, size - part.shape[1]))
    return None if part.all() else part


def _plan(
    pattern: Pattern,
    batch: int,
    queries: Span,
    keys: Span,
    exists: bytes | None,
    segments: bytes | None,
    heads: int,
) -> Plan:
    """Padded queries see what others would: only who is asked counts as padding, as in transformers."""
    there = None if exists is None else np.frombuffer(exists, bool)
    documents = None if segments is None else _runs(np.frombuffer(segments, np.int64), batch)
    asked = _layout(batch, keys, there, documents)
    asking = asked if queries == keys and there is None else _layout(batch, queries, None, documents)
    return plan(pattern, asking, asked, heads=heads)


def _layout(batch: int, span: Span, exists: BoolArray | None, documents: IntArray | None) -> Layout:
    """The rows of a batch, flattened; each document as long as the batch, since no pattern here asks."""
    size, first = span
    position = np.tile(np.arange(first, first + size, dtype=np.int32), batch)
    document = np.repeat(np.arange(batch, dtype=np.int32), size) if documents is None else documents
    exists = np.ones(batch * size, bool) if exists is None else exists
    length = np.full(batch * size, first + size, np.int32)
    lengths = np.full(int(document[-1]) + 1 if document.size else batch, first + size, np.int32)
    return Layout(Site(position, position, document, length, np.zeros(batch * size, bool), exists), lengths)


def _runs(segments: IntArray, batch: int) -> IntArray:
    """(B * L,) segments to documents: a new one where the segment changes, or the row."""
    rows = segments.reshape(batch, -1)
    changes = np.ones(rows.shape, bool)
    changes[:, 1:] = rows[:, 1:] != rows[:, :-1]
    return (np.cumsum(changes.reshape(-1)) - 1).astype(np.int32)
