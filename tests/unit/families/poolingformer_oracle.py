"""The definition in longspan/families/poolingformer/model.py, written out token by token and slot by slot."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.nn.relative import bucket


class Document(NamedTuple):
    """One document, or one row of a padded batch."""

    ids: Tensor
    exists: list[bool]
    marked: list[int]


def hidden_states(model: Any, document: Document) -> Tensor:
    """The hidden states (n, C) of one document; rows that do not exist are whatever they are."""
    c, e, n = model.config, model.embeddings, len(document.ids)
    places = torch.arange(n) + c.position_offset
    kinds = e.types.weight[0] if c.token_types else 0.0
    x: Tensor = e.norm(e.words(document.ids) + kinds + e.positions(places))
    for index, layer in enumerate(model.layers):
        context = first_level(c, index, layer.attention, x, document, bias_of(model, n))
        if index in c.two_level:
            context = both_levels(c, layer.attention, x, context, document, bias_of(model, n))
        x = layer.attention_norm(x + linear(layer.attention.out, context))
        up = F.gelu(linear(layer.feed_forward.up, x))
        x = layer.feed_forward_norm(x + linear(layer.feed_forward.down, up))
    return x


def linear(layer: Any, x: Tensor) -> Tensor:
    y: Tensor = x @ layer.weight.T + layer.bias
    return y


def bias_of(model: Any, n: int) -> Tensor | None:
    """(n, n, H): what is added to the score of a query and a key at a place."""
    if not model.config.buckets:
        return None
    place = torch.arange(n)
    found: Tensor = model.relative_bias.table.weight[bucket(place[None, :] - place[:, None], 32)]
    return found


def looks(q: Tensor, k: Tensor, v: Tensor, heads: int, seen: list[list[bool]], bias: Tensor | None) -> Tensor:
    """What queries (n, C) see of keys and values (K, C), where seen[i][j]; `bias` (n, K, H)."""
    parts = []
    hidden = ~torch.tensor(seen, dtype=torch.bool).view(len(q), len(k))
    for h, (a, b, c) in enumerate(zip(*(x.chunk(heads, dim=1) for x in (q, k, v)), strict=True)):
        scores = a @ b.T / a.shape[1] ** 0.5
        scores = scores if bias is None else scores + bias[:, :, h]
        parts.append(scores.masked_fill(hidden, -torch.inf).softmax(1).nan_to_num(0.0) @ c)
    return torch.cat(parts, dim=1)


def first_level(c: Any, index: int, a: Any, x: Tensor, document: Document, bias: Tensor | None) -> Tensor:
    """Y: a window and the global tokens for local rows, everything by other projections for global ones."""
    n, marked, exists = len(x), document.marked, document.exists
    alive = [[exists[i] and exists[j] for j in range(n)] for i in range(n)]
    near = [
        [alive[i][j] and (abs(i - j) <= c.radius[index] or j in marked) for j in range(n)] for i in range(n)
    ]
    q, k, v = linear(a.qkv, x).chunk(3, dim=1)
    local = looks(q, k, v, c.heads, near, bias)
    q, k, v = (linear(p, x) for p in (a.global_query, a.global_key, a.global_value))
    whole = looks(q, k, v, c.heads, alive, bias)
    return torch.stack([whole[i] if i in marked else local[i] for i in range(n)])


def both_levels(c: Any, a: Any, x: Tensor, y: Tensor, document: Document, bias: Tensor | None) -> Tensor:
    """Y + Z, or Z."""
    source = x if c.mix else y
    if c.share_weights:
        q, k, v = linear(a.qkv, source).chunk(3, dim=1)
    else:
        q, k, v = (linear(p, source) for p in (a.second.query, a.second.key, a.second.value))
    slots = [slot for slot in grid(c, document.exists) if slot.covered]
    keys, values = (
        torch.stack([pooled(c, a, rows, slot, which) for slot in slots]) for which, rows in enumerate((k, v))
    )
    seen = [
        [real and abs(slot.centre - i) <= c.wide_radius for slot in slots]
        for i, real in enumerate(document.exists)
    ]
    far = None if bias is None else bias[:, [slot.centre for slot in slots]]
    z = looks(q, keys, values, c.heads, seen, far)
    return z + y if c.residual else z


class Slot(NamedTuple):
    """Where a slot begins, which may be before the document, its centre, and the existing tokens in it."""

    first: int
    centre: int
    covered: list[int]


def grid(c: Any, exists: list[bool]) -> list[Slot]:
    """All slots of a document."""
    length = max((i + 1 for i, real in enumerate(exists) if real), default=0)
    slots = []
    for j in range(-(-len(exists) // c.stride)):
        first = j * c.stride - (c.kernel - c.stride) // 2
        covered = [i for i in range(first, first + c.kernel) if 0 <= i < length and exists[i]]
        slots.append(Slot(first, min(first + (c.kernel - 1) // 2, length - 1), covered))
    return slots


def pooled(c: Any, a: Any, v: Tensor, slot: Slot, which: int) -> Tensor:
    """One slot; `which` is 0 for keys, 1 for values."""
    first, _, covered = slot
    rows = v[covered]
    if c.pooling == "mean":
        return rows.mean(0)
    if c.pooling == "max":
        return rows.max(0).values
    heads = c.heads if c.delta_by_head else 1
    maps = a.second.pooling.delta.weight
    maps = maps.reshape(1 if c.delta_shared else 2, heads, c.kernel, c.width // heads)
    maps = maps[0 if c.delta_shared else which]
    middle = min(covered, key=lambda i: (abs(i - first - (c.kernel - 1) // 2), i))
    source = {"centre": v[middle], "first": v[covered[0]], "mean": rows.mean(0)}[c.delta_from]
    parts = []
    for h in range(heads):
        of = slice(h * c.width // heads, (h + 1) * c.width // heads)
        scores = torch.stack([maps[h, i - first] @ source[of] for i in covered])
        parts.append(scores.softmax(0) @ rows[:, of])
    return torch.cat(parts)
