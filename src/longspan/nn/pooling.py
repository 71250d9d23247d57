"""Pooled rows: a slot of a grid over documents becomes the mean, maximum or learned mean of its rows."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.errors import one_of
from longspan.layout import Layout
from longspan.nn.linear import linear, matrix, native, natively, new_linear, wide

SOURCES = ("centre", "first", "mean")
Pair = tuple[Tensor, Tensor]


class Slots(NamedTuple):
    """Which rows of a layout each slot of its grid pools.

    >>> slots = Slots.of(Layout.packed([6]), kernel=3, stride=2)
    >>> slots.rows.tolist(), slots.exists.tolist()[2]
    ([[0, 1, 2], [2, 3, 4], [4, 5, 5]], [True, True, False])
    """

    rows: Tensor
    "(S, K) the rows; the middle one in the place of a row that does not exist."
    exists: Tensor
    "(S, K) whether a row counts; in a slot without any row, which nobody sees, all do."
    centre: Tensor
    "(S,) the middle row: of those that exist the nearest to the middle, the earlier of two."
    first: Tensor
    "(S,) the first row that exists."

    @staticmethod
    def of(layout: Layout, kernel: int, stride: int) -> "Slots":
        """The slots of `layout.pool(kernel, stride)`."""
        slots, site = layout.pool(kernel, stride), layout.sites
        document = slots.sites.document
        count = np.bincount(document, minlength=layout.documents)
        number = np.arange(slots.size) - (np.cumsum(count) - count)[document]
        begin, end = (np.searchsorted(site.document, document, side=side) for side in ("left", "right"))
        tap = np.arange(kernel)
        rows = (begin + number * stride - (kernel - stride) // 2)[:, None] + tap  # (S,) -> (S, K)
        inside = (rows >= begin[:, None]) & (rows < end[:, None])
        rows = np.clip(rows, begin[:, None], end[:, None] - 1)
        exists = inside & site.exists[rows]
        exists |= ~exists.any(axis=1, keepdims=True)
        far = 2 * np.abs(tap - (kernel - 1) // 2) + (tap > (kernel - 1) // 2)
        nearest, first = np.where(exists, far, far.max() + 1).argmin(axis=1), exists.argmax(axis=1)
        centre, first = (np.take_along_axis(rows, at[:, None], axis=1) for at in (nearest, first))
        columns = np.where(exists, rows, centre), exists, centre[:, 0], first[:, 0]
        return Slots(*map(torch.from_numpy, columns))

    def to(self, device: torch.device) -> "Slots":
        """The same slots with their rows on a device."""
        if self.rows.device == device:
            return self
        return Slots(*(column.to(device) for column in self))

    @property
    def share(self) -> Tensor:
        """(S, K) what each row weighs in the mean of those that exist."""
        return self.exists.double() / self.exists.sum(1, keepdim=True)


class MeanPooling(nn.Module):
    """The mean of the rows that exist."""

    def forward(self, k: Tensor, v: Tensor, slots: Slots) -> Pair:
        """Keys and values (N, C) pooled to (S, C)."""
        return summed(k, slots.rows, slots.share), summed(v, slots.rows, slots.share)

    def projected(self, x: Tensor, key: nn.Linear, value: nn.Linear, slots: Slots, into: Pair | None) -> Pair:
        """key(x) and value(x) pooled; the mean may be taken before, and fewer rows be projected."""
        mean = summed(x, slots.rows, slots.share)
        return _projected((mean, mean), key, value, into)


class MaxPooling(nn.Module):
    """The largest number of the rows that exist, in each column by itself."""

    def forward(self, k: Tensor, v: Tensor, slots: Slots) -> Pair:
        """Keys and values (N, C) pooled to (S, C)."""
        return _largest(k, slots), _largest(v, slots)

    def projected(self, x: Tensor, key: nn.Linear, value: nn.Linear, slots: Slots, into: Pair | None) -> Pair:
        """key(x) and value(x) pooled."""
        return self.forward(linear(key, x), linear(value, x), slots)


class DynamicPooling(nn.Module):
    """LDConv: a mean whose weights are softmax(W u), where u is a row of the slot itself (Wu et al. 2019).

    `source` tells which: the "centre", the "first" or the "mean" of the slot's rows. With `heads` above 1
    each head has a W for its own part of u. Keys and values have a W each, or the same one if `shared`.

    >>> DynamicPooling(6, kernel=5).delta
    Linear(in_features=6, out_features=10, bias=False)
    """

    def __init__(
        self, width: int, *, kernel: int, source: str = "centre", heads: int = 1, shared: bool = False
    ) -> None:
        super().__init__()
        one_of("source", source, SOURCES)
        self.delta = new_linear(width // heads, (1 if shared else 2) * heads * kernel, bias=False)
        self.kernel, self.source, self.heads = kernel, source, heads

    def forward(self, k: Tensor, v: Tensor, slots: Slots) -> Pair:
        """Keys and values (N, C) pooled to (S, C)."""
        of_keys, of_values = self._maps(k)
        return self._pooled(k, of_keys, slots), self._pooled(v, of_values, slots)

    def projected(self, x: Tensor, key: nn.Linear, value: nn.Linear, slots: Slots, into: Pair | None) -> Pair:
        """key(x) and value(x) pooled.

        The weights of a slot sum to 1, so they may be applied before the projection, and W (A u + b) is
        (W A) u + W b: nothing but pooled rows is projected.
        """
        if self.heads > 1:
            return self.forward(linear(key, x), linear(value, x), slots)
        u, pooled = wide(self._source(x, slots)), []
        for layer, delta in zip((key, value), self._maps(x), strict=True):
            own, offset = matrix(layer, x)
            assert offset is not None
            # In memory of their own: the bits of torch's products depend on how a file's is aligned.
            weight, bias = wide(own).clone(), wide(offset).clone()
            logits = _linear(u, delta[0] @ weight, delta[0] @ bias)
            pooled.append(summed(x, slots.rows, _weights(logits, slots.exists)))
        return _projected((pooled[0], pooled[1]), key, value, into)

    def _pooled(self, x: Tensor, delta: Tensor, slots: Slots) -> Tensor:
        """(N, C) -> (S, C) by the definition; `delta` (H, K, D)."""
        u = wide(self._source(x, slots)).unflatten(1, (self.heads, -1))  # (S, C) -> (S, H, D)
        weights = _weights(torch.einsum("shd,hkd->shk", u, delta), slots.exists[:, None])
        head = torch.arange(self.heads, device=x.device)[:, None]
        rows = slots.rows[:, None] * self.heads + head  # (S, K) -> (S, H, K): rows of (N * H, D)
        by_head = x.reshape(x.shape[0] * self.heads, -1)
        return summed(by_head, rows.flatten(0, 1), weights.flatten(0, 1)).view(slots.rows.shape[0], -1)

    def _maps(self, x: Tensor) -> Pair:
        """W of keys and of values, each (H, K, D)."""
        weight, _ = matrix(self.delta, x[:, : x.shape[1] // self.heads])
        maps = wide(weight).clone().unflatten(0, (-1, self.heads, self.kernel))
        return maps[0], maps[-1]

    def _source(self, x: Tensor, slots: Slots) -> Tensor:
        """(N, C) -> (S, C): what the weights of a slot are made from."""
        if self.source == "mean":
            return summed(x, slots.rows, slots.share)
        return x[slots.centre if self.source == "centre" else slots.first]


Pooling = MeanPooling | MaxPooling | DynamicPooling


def summed(x: Tensor, rows: Tensor, weights: Tensor) -> Tensor:
    """Sums of rows of x (N, C), chosen by `rows` (S, K) and weighted by `weights` (S, K), to (S, C).

    >>> summed(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[0, 2]]), torch.tensor([[0.5, 0.5]]))
    tensor([[2.5000]])
    """
    # An embedding bag gathers and adds in one go, several times faster than torch's other ways to say it.
    return F.embedding_bag(rows, x.contiguous(), per_sample_weights=weights.to(x.dtype), mode="sum")


def _linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    if not torch.is_grad_enabled() and native(x, weight) is not None:
        return natively(x, weight, bias, into=None, then=None, times=None, plus=None)
    return F.linear(x, weight, bias)


def _weights(logits: Tensor, exists: Tensor) -> Tensor:
    return logits.masked_fill(~exists, -torch.inf).softmax(-1)


def _largest(x: Tensor, slots: Slots) -> Tensor:
    best = x[slots.rows[:, 0]]
    for tap in slots.rows.T[1:]:
        best = torch.maximum(best, x[tap])
    return best


def _projected(pooled: Pair, key: nn.Linear, value: nn.Linear, into: Pair | None) -> Pair:
    k, v = into or (None, None)
    return linear(key, pooled[0], k), linear(value, pooled[1], v)
