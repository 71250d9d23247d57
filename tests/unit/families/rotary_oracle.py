"""Encoders with rotary positions by their definition: complex numbers and dense scores."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from longspan.layout import Layout


def written_out(model: Any, ids: Tensor, layout: Layout) -> Tensor:
    """The model in float64; norms and linear layers are called as they are."""
    c, e = model.config, model.embeddings
    x: Tensor = e.words(ids) * (c.width**0.5 if c.rescale_embeddings else 1.0)
    x = x if e.norm is None else e.norm(x)
    for number, layer in enumerate(model.layers):
        ((spec,),) = c.attention(layout)[number : number + 1]
        y = x if layer.attention_norm is None else layer.attention_norm(x)
        y = layer.attention.out(attended(layer.attention, y, c, number, spec.pattern, layout))
        x = x + after(layer, "attention_out_norm", y)
        x = x + after(layer, "feed_forward_out_norm", gated(layer.feed_forward, layer.feed_forward_norm(x)))
    return after(model.layers[-1], "closing_norm", x)


def after(layer: Any, name: str, y: Tensor) -> Tensor:
    """y, and its norm where there is one between a block and the sum."""
    norm: Callable[[Tensor], Tensor] | None = getattr(layer, name, None)
    return y if norm is None else norm(y)


def gated(block: Any, x: Tensor) -> Tensor:
    gate, value = block.up(x).chunk(2, -1)
    found: Tensor = block.down(block.act(gate) * value)
    return found


def attended(a: Any, x: Tensor, c: Any, number: int, pattern: Any, layout: Layout) -> Tensor:
    """(N, C) -> (N, H * D)."""
    size, groups = c.head_size, a.kv_heads
    q, k, v = a.qkv(x).split([c.heads * size, groups * size, groups * size], -1)
    q, k, v = (part.unflatten(-1, (-1, size)) for part in (q, k, v))
    if a.query_norm is not None:
        q, k = a.query_norm(q), a.key_norm(k)
    turn = angles(c.layer_rope(number), size, layout)
    q, k = turned(q, turn), turned(k, turn)
    seen = torch.from_numpy(pattern.matrix(layout).copy()).double().log()
    scale = size**-0.5 if a.scale is None else a.scale
    heads = []
    for head in range(c.heads):
        group = head * groups // c.heads
        weights = (q[:, head] @ k[:, group].T * scale + seen).softmax(-1)
        heads.append(weights @ v[:, group])
    return torch.cat(heads, -1)


def angles(rope: Any, size: int, layout: Layout) -> Tensor:
    """(N, D / 2): by how much each pair is turned, as a complex number; angles are float32, as everywhere."""
    places = torch.from_numpy(layout.sites.position.astype("float32"))
    angle = places[:, None] * rope.frequencies(size)
    return torch.complex((angle.cos() * rope.scaling).double(), (angle.sin() * rope.scaling).double())


def turned(x: Tensor, turn: Tensor) -> Tensor:
    """(N, H, D): the first half of a head is the real part, the second the imaginary one."""
    a, b = x.chunk(2, -1)
    whole = torch.complex(a, b) * turn[:, None]
    return torch.cat([whole.real, whole.imag], -1)
