"""ETC written out: one text at a time, four dense pieces with explicit masks and ids, plain torch.

It is written from the paper and shares nothing with the model but its weights.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from longspan.structure.structure import Outline


def column(outline: Outline, name: str, size: int, empty: int) -> Tensor:
    given = getattr(outline, name)
    return torch.full((size,), empty) if given is None else torch.from_numpy(np.asarray(given, np.int64))


def by_distance(a: int, b: int, most: int) -> Tensor:
    """(a, b) ids of pairs in one stream: 0 self, 1..k right, k+1..2k left."""
    right = torch.arange(b) - torch.arange(a)[:, None]
    return torch.where(right >= 0, right.clamp(max=most), most + (-right).clamp(max=most))


def masks_and_ids(config: Any, outline: Outline) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """l2l, l2g, g2g, g2l: what may be seen, and the relative ids."""
    n, g, k = outline.parent.size, outline.words.size, config.distance
    parent = column(outline, "parent", n, -1)
    paragraph, linked = column(outline, "paragraph", n, -1), column(outline, "linked", n, -1)
    segment, above = column(outline, "segment", n, 0), column(outline, "global_segment", g, 0)
    free, free_above = column(outline, "free", n, 0) > 0, column(outline, "global_free", g, 0) > 0
    if config.flat:
        paragraph, linked = torch.full_like(paragraph, -1), torch.full_like(linked, -1)
        segment, above = torch.zeros_like(segment), torch.zeros_like(above)
        free, free_above = torch.zeros_like(free), torch.zeros_like(free_above)
    slot, place = torch.arange(g), torch.arange(n)
    member = (parent[:, None] == slot) | (paragraph[:, None] == slot)  # (n, g)
    l2l = ((place[:, None] - place).abs() <= config.radius) & (segment[:, None] == segment)
    l2g = member | free[:, None] if config.hard_l2g else torch.ones(n, g, dtype=torch.bool)
    g2l = member.T | free_above[:, None] if config.hard_g2l else torch.ones(g, n, dtype=torch.bool)
    g2g = torch.ones(g, g, dtype=torch.bool)
    related = 2 * k + 1 + (member | (linked[:, None] == slot)).long()
    across = by_distance(g, g, k).masked_fill(above[:, None] != above, 2 * k + 3)
    return (l2l, l2g, g2g, g2l), (by_distance(n, n, k), related, across, related.T)


def projections(attention: Any, long: Tensor, above: Tensor) -> dict[str, Tensor]:
    """All queries, keys and values by name; l2g_key is what tokens see of global tokens."""
    if attention.sharing == "all":
        q, k, v = attention.qkv(long).chunk(3, -1)
        gq, gk, gv = attention.qkv(above).chunk(3, -1)
        return {"lq": q, "l2l_k": k, "l2l_v": v, "g2l_k": k, "g2l_v": v} | {
            "gq": gq, "g2g_k": gk, "g2g_v": gv, "l2g_k": gk, "l2g_v": gv
        }  # fmt: skip
    if attention.sharing == "sides":
        found = {"lq": attention.long_query(long), "gq": attention.global_query(above)}
        for piece, linear, rows in (
            ("l2l", attention.long_kv, long),
            ("l2g", attention.long_kv, above),
            ("g2g", attention.global_kv, above),
            ("g2l", attention.global_kv, long),
        ):
            found[f"{piece}_k"], found[f"{piece}_v"] = linear(rows).chunk(2, -1)
        return found
    names = ("lq", "l2l_k", "l2l_v", "g2l_k", "g2l_v"), ("gq", "g2g_k", "g2g_v", "l2g_k", "l2g_v")
    parts = attention.from_long(long).chunk(5, -1), attention.from_global(above).chunk(5, -1)
    return dict(zip(names[0] + names[1], parts[0] + parts[1], strict=True))


def one_softmax(
    q: Tensor, keys: list[Tensor], values: list[Tensor], mask: Tensor, ids: Tensor, relative: Any, heads: int
) -> Tensor:
    """q (a, C) over the keys of both pieces (b, C): (a, C)."""
    size = q.shape[1] // heads
    q = q.view(-1, heads, size)
    k, v = (torch.cat(parts).view(-1, heads, size) for parts in (keys, values))
    scores = torch.einsum("ahd,bhd->hab", q, k)
    if relative is not None:
        by_id = torch.einsum("ahd,rhd->har", q, relative.keys) + relative.bias.T[:, None]
        scores = scores + by_id.gather(2, ids.expand(heads, *ids.shape))
    scores = (scores / size**0.5).masked_fill(~mask, -torch.inf)
    return torch.einsum("hab,bhd->ahd", scores.softmax(-1), v).flatten(1)


def etc(model: Any, ids: Tensor, outline: Outline, types: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The hidden states (n, C) and (g, C) of one text."""
    config, e = model.config, model.embeddings
    n, g = outline.parent.size, outline.words.size
    long, above = e.words(ids), e.words(torch.from_numpy(outline.words.astype(np.int64)))
    if e.projection is not None:
        long, above = e.projection(long), e.projection(above)
    kinds = column(outline, "types", g, config.global_type)
    long = long + e.types(torch.full((n,), config.long_type) if types is None else types)
    above = above + e.types(kinds)
    if config.absolute:
        long = long + e.positions.weight[config.position_offset :][:n]
        above = above + e.global_positions.weight[config.position_offset :][:g]
    long, above = e.norm(long), e.global_norm(above)
    (l2l, l2g, g2g, g2l), (near, related, across, members) = masks_and_ids(config, outline)
    for layer in model.layers:
        a, told = layer.attention, config.distance > 0
        p = projections(a, long, above)
        mask, pairs = torch.cat([l2l, l2g], 1), torch.cat([near, related], 1)
        up = one_softmax(
            p["lq"], [p["l2l_k"], p["l2g_k"]], [p["l2l_v"], p["l2g_v"]], mask, pairs,
            a.long_relative if told else None, config.heads,
        )  # fmt: skip
        mask, pairs = torch.cat([g2g, g2l], 1), torch.cat([across, members], 1)
        down = one_softmax(
            p["gq"], [p["g2g_k"], p["g2l_k"]], [p["g2g_v"], p["g2l_v"]], mask, pairs,
            a.global_relative if told else None, config.heads,
        )  # fmt: skip
        long = layer.attention_norm(long + a.out(up))
        above = layer.global_attention_norm(above + (a.out if config.share_out else a.global_out)(down))
        long = layer.feed_forward_norm(long + layer.feed_forward(long))
        if config.share_feed_forward:
            above = layer.feed_forward_norm(above + layer.feed_forward(above))
        else:
            above = layer.global_feed_forward_norm(above + layer.global_feed_forward(above))
    return long, above
