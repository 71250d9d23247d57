"""Rotary positions: queries and keys are turned by angles that grow with the position (Su et al. 2021)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from longspan import native
from longspan.engine.call import AnyPlan, attention
from longspan.layout import Layout
from longspan.nn.attention import Biases, CacheUpdate, fresh_dropout
from longspan.nn.linear import Fused, is_plain, linear, new_linear
from longspan.nn.rope import RopeParameters
from longspan.nn.rows import Scratch, projected


class Rotations(NamedTuple):
    """By how much each row is turned."""

    cos: Tensor
    "(N, D / 2)"
    sin: Tensor
    "(N, D / 2)"

    def of(self, rows: slice) -> "Rotations":
        """Those of some rows."""
        return Rotations(self.cos[rows], self.sin[rows])


def rotations(rope: RopeParameters, size: int, layout: Layout) -> Rotations:
    """The angles of the rows of a layout, for heads of `size`; each document has its own positions.

    >>> rotations(RopeParameters(), 2, Layout.packed([2, 2])).sin
    tensor([[0.0000],
            [0.8415],
            [0.0000],
            [0.8415]])
    """
    site = layout.sites
    lengths = np.maximum(site.length, 1) if rope.rope_type == "dynamic" else np.ones(1, np.int32)
    lengths = np.maximum(lengths, rope.original_max_position_embeddings)  # below, all are alike
    distinct, which = np.unique(lengths, return_inverse=True)
    table = torch.stack([rope.frequencies(size, int(length)) for length in distinct])
    positions = torch.from_numpy(site.position.astype(np.float32)).unsqueeze(1)
    chosen = table[torch.from_numpy(which)] if len(distinct) > 1 else table
    angles = positions * chosen  # (N, 1) * (N or 1, D / 2) -> (N, D / 2)
    return Rotations(angles.cos() * rope.scaling, angles.sin() * rope.scaling)


def rotate(x: Tensor, heads: int, turn: Rotations) -> Tensor:
    """x (N, W), whose first `heads` heads are turned by the angles of their row; x may be used up.

    >>> quarter = Rotations(torch.zeros(1, 1), torch.ones(1, 1))
    >>> rotate(torch.tensor([[1.0, 0.0, 5.0]]), 1, quarter)
    tensor([[0., 1., 5.]])
    """
    if x.is_meta and not torch.is_grad_enabled():  # a rehearsal of what is done in place
        return x
    cos, sin = (part.to(x.device) for part in turn)
    served = native.reads(x) and x.dtype == cos.dtype == torch.float32 and native.core() is not None
    if served and x.stride(1) == 1 and not torch.is_grad_enabled():
        _turn(x, heads, cos, sin)
        return x
    if served and x.is_contiguous() and not x.is_leaf:
        turned: Tensor = _Rotate.apply(x, heads, cos, sin)  # type: ignore[no-untyped-call]
        return turned
    half, dtype = cos.shape[1], torch.promote_types(x.dtype, cos.dtype)
    a, b = x[:, : 2 * heads * half].to(dtype).unflatten(1, (heads, 2, half)).unbind(2)  # (N, H, D / 2)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    halves = torch.stack([a * cos - b * sin, b * cos + a * sin], 2).flatten(1).to(x.dtype)
    return torch.cat([halves, x[:, 2 * heads * half :]], 1)


def _turn(x: Tensor, heads: int, cos: Tensor, sin: Tensor, *, back: bool = False) -> None:
    size = 2 * cos.shape[1]
    native.rotate(x[:, : heads * size].unflatten(1, (heads, size)), cos, sin, back=back)


class _Rotate(torch.autograd.Function):
    """In place: nothing needs what a projection returned, and a turn can be turned back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, heads: int, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.mark_dirty(x)
        ctx.heads = heads
        ctx.save_for_backward(cos, sin)
        _turn(x, heads, cos, sin)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradient = upstream.clone(memory_format=torch.contiguous_format)
        _turn(gradient, ctx.heads, *ctx.saved_tensors, back=True)
        return gradient, None, None, None


class RotaryAttention(nn.Module):
    """x (N, C) to the context of each row (N, H * D), before the output projection `out`.

    Queries and keys are turned by the row's angles, after their norms (of each head) where there are any.
    Some heads may share keys and values: there are `kv_heads` of these. Else as SelfAttention.
    """

    int8_layers: tuple[str, ...] = ("qkv", "out")

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        kv_heads: int | None = None,
        head_size: int | None = None,
        bias: bool = False,
        out_bias: bool = False,
        dropout: float = 0.0,
        scale: float | None = None,
        norm: Callable[[int], nn.Module] | None = None,
    ) -> None:
        super().__init__()
        size = width // heads if head_size is None else head_size
        self.heads, self.kv_heads = heads, heads if kv_heads is None else kv_heads
        self.splits = heads * size, self.kv_heads * size, self.kv_heads * size
        "Columns of queries, keys and values."
        self.qkv = new_linear(width, sum(self.splits), bias=bias)
        self.out = new_linear(heads * size, width, bias=out_bias)
        self.query_norm = None if norm is None else norm(size)
        self.key_norm = None if norm is None else norm(size)
        self.dropout, self.scale = dropout, scale

    def forward(
        self,
        x: Tensor,
        pairs: AnyPlan,
        turn: Rotations,
        biases: Biases = (),
        *,
        scratch: Scratch | None = None,
        cache: CacheUpdate | None = None,
    ) -> Tensor:
        columns = sum(self.splits)
        room = projected(scratch)
        qkv = linear(self.qkv, x, None if room is None or room.shape[1] < columns else room[:, :columns])
        if self.query_norm is None or self.key_norm is None:
            q, k, v = self._split(rotate(qkv, self.heads + self.kv_heads, turn))
        else:
            q, k, v = self._split(qkv)
            q, k = (
                rotate(norm(part).flatten(1), part.shape[1], turn).view(part.shape)
                for norm, part in ((self.query_norm, q), (self.key_norm, k))
            )
        k, v = (k, v) if cache is None else cache(k, v)
        out = None if scratch is None else scratch.for_heads(self.heads, self.splits[0])
        dropout = fresh_dropout(self)
        context = attention(q, k, v, pairs, scale=self.scale, terms=biases, dropout=dropout, out=out)
        return context.flatten(1)  # (N, H, D) -> (N, H * D)

    @property
    def key_columns(self) -> int | None:
        """Columns of keys and values; None if queries cannot be made apart from them without loss of time."""
        apart = is_plain(self.qkv) or isinstance(self.qkv, Fused)
        return sum(self.splits[1:]) if apart and self.key_norm is None else None

    def key_values(self, x: Tensor, turn: Rotations, into: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The keys and values of rows (K, C) that are seen, but see nothing themselves."""
        kv = linear(self.qkv, x, into, rows=slice(self.splits[0], None))
        if self.key_norm is None:
            turned = rotate(kv, self.kv_heads, turn)
            kv = turned if into is None or turned is into else into.copy_(turned)
        k, v = self.split_keys(kv)
        if self.key_norm is not None:
            k = rotate(self.key_norm(k).flatten(1), self.kv_heads, turn).view(k.shape)
        return k, v

    def split_keys(self, kv: Tensor) -> tuple[Tensor, Tensor]:
        """(K, 2 G * D) -> (K, G, D), (K, G, D)."""
        k, v = (part.unflatten(1, (self.kv_heads, -1)) for part in kv.split(self.splits[1:], 1))
        return k, v

    def of_queries(
        self,
        x: Tensor,
        keys: tuple[Tensor, Tensor],
        pairs: AnyPlan,
        turn: Rotations,
        biases: Biases,
        scratch: Scratch,
    ) -> Tensor:
        """The context of rows (M, C) that see some keys and values, of their own and of other rows."""
        rows, columns = len(x), self.splits[0]
        q = linear(self.qkv, x, scratch.piece("queries", rows, columns), rows=slice(columns))
        q = rotate(q, self.heads, turn).unflatten(1, (self.heads, -1))
        out = scratch.piece("context", rows, columns, dense=True).unflatten(1, (self.heads, -1))
        return attention(q, *keys, pairs, scale=self.scale, terms=biases, out=out).flatten(1)

    def _split(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(N, (H + 2 G) * D) -> (N, H, D), (N, G, D), (N, G, D)."""
        sizes = self.heads, self.kv_heads, self.kv_heads
        q, k, v = (
            part.unflatten(1, (count, -1))
            for part, count in zip(qkv.split(self.splits, 1), sizes, strict=True)
        )
        return q, k, v
