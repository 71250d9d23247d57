"""Attention over a plan in portable torch, on any device: batched matrix products over chunks of tiles."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from longspan.engine.backends.base import DTYPES, Gradients, Problem, allowed, arithmetic, unpack
from longspan.engine.backends.chunks import Chunk, chunks
from longspan.engine.dropout import kept, key_hash, row_hash
from longspan.engine.merge import merge

HEADS = 16  # computed together; with a chunk's limits it bounds the memory of one step


class Tiled:
    """Gathers rows into tiles, multiplies whole chunks of tiles, and masks only the tiles that need it."""

    name = "tiled"
    trusts_plans = True

    def refuses(self, problem: Problem) -> list[str]:
        return [] if problem.q.dtype in DTYPES else [f"does not know {problem.q.dtype}"]

    def forward(self, problem: Problem, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q = problem.q
        out = q.new_zeros(*q.shape[:2], problem.v.shape[2])
        lse = q.new_full(q.shape[:2], -torch.inf, dtype=arithmetic(q.dtype))
        for group in _groups(problem):
            out[:, group.heads], lse[:, group.heads] = group.forward()
        return out, lse

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None
    ) -> Gradients:
        inputs = (problem.q, problem.k, problem.v, problem.relative, problem.content, problem.table)
        total = Gradients(*(x if x is None else x.new_zeros(x.shape) for x in inputs))  # type: ignore[arg-type]
        # Several query heads may add to a key head, and not in half precision.
        sums = total._replace(k=total.k.to(lse.dtype), v=total.v.to(lse.dtype))
        empty = lse == -torch.inf
        # (N, H): softmax passes on only differences from it
        mean = (out.to(lse.dtype) * grad_out).sum(-1)
        mean = mean if grad_lse is None else (mean - grad_lse).masked_fill_(empty, 0)
        lse = lse.masked_fill(empty, torch.inf)  # exp(score - inf) is 0
        for group in _groups(problem):
            group.add_gradients(sums, grad_out, lse.unsqueeze(-1), mean.unsqueeze(-1))
        return sums._replace(k=sums.k.to(total.k.dtype), v=sums.v.to(total.v.dtype))


class _Step(NamedTuple):
    """One chunk's operands and scores."""

    tiles: Tensor  # (T,) query tiles
    keys: Tensor  # (T * E,) key tiles
    q: Tensor  # (h * T, 64, D), scaled
    k: Tensor  # (h * T, E * 64, D)
    v: Tensor  # (h * T, E * 64, Dv)
    score: Tensor  # (h, T, 64, E * 64)
    masked: Tensor  # the part of score whose entries need a mask
    forbidden: Tensor  # (T, 64, M * 64) bool, that mask
    rank: Tensor | None  # (h, T, 64, E * 64) int64
    keep: Tensor | None  # (h, T, 64, E * 64) bool
    tanh: Tensor | None  # (h, T, 64, E * 64), where scores are capped


class _Terms(NamedTuple):
    """A group's terms, or their gradients, by rank instead of label."""

    relative: Tensor | None  # (h, L, D)
    content: Tensor | None  # (h, 1, 1, D), scaled
    table: Tensor | None  # (h, 1, 1, L)


class _Group:
    """Heads that share their tile lists, with their rows gathered into tiles."""

    def __init__(self, problem: Problem, heads: list[int], kind: int) -> None:
        self.problem, arrays = problem, problem.arrays
        self.dtype = arithmetic(problem.q.dtype)
        self.head_numbers = torch.tensor(heads, device=problem.q.device)
        in_a_row = heads[-1] - heads[0] == len(heads) - 1
        self.heads = slice(heads[0], heads[-1] + 1) if in_a_row else self.head_numbers
        self.key_heads = self.heads
        if (grouped := problem.q.shape[1] // problem.k.shape[1]) > 1:
            self.key_heads = self.head_numbers // grouped
        first, last = arrays.class_start[kind : kind + 2].tolist()
        start = arrays.entry_start[first : last + 1].long()
        entries = arrays.entries[start[0] : start[-1]].long()
        used, key = entries[:, 0].unique(return_inverse=True)
        self.entries = torch.cat([entries, entries.new_tensor([[0, -2, 1, 0]])])  # number -1 sees nothing
        self.key = torch.cat([key, key.new_tensor([len(used)])])  # and has a key tile of zeros
        self.multiple = bool((entries[:, 2] != 1).any())
        self.chunks = chunks(entries, start - start[0], arrays.k_rows[:, -1] >= 0, len(heads))
        self.q_rows = arrays.q_rows[first:last].long()
        self.k_rows = torch.cat([arrays.k_rows[used].long(), key.new_full((1, 64), -1)])
        self.q = self._tiles(problem.q[:, self.heads], self.q_rows) * problem.scale
        self.k, self.v = (self._tiles(x[:, self.key_heads], self.k_rows) for x in (problem.k, problem.v))
        low, high = arrays.label_start[kind : kind + 2].tolist()
        self.labels = arrays.label_list[low:high].long()
        self.terms = self._take_terms()
        if problem.seed is not None:
            document, position = arrays.q_sites[self.q_rows].unbind(-1)  # padding reads some row, unused
            head = self.head_numbers.to(torch.int32)[:, None, None]
            self.row_hash = row_hash(problem.seed, document, position, head)  # (h, T, 64)
            self.key_hash = key_hash(arrays.k_positions[self.k_rows])  # (KT, 64)

    def _take_terms(self) -> _Terms:
        relative, content, table = self.problem.relative, self.problem.content, self.problem.table
        if relative is not None:
            relative = relative[self.labels][:, self.heads].transpose(0, 1).to(self.dtype)
        if content is not None:
            content = content[self.heads, None, None].to(self.dtype) * self.problem.scale
        if table is not None:
            table = table[self.labels][:, self.heads].T[:, None, None].to(self.dtype)
        return _Terms(relative, content, table)

    def _tiles(self, x: Tensor, rows: Tensor) -> Tensor:
        """(N, h, D) -> (h, T, 64, D), 0 at padding."""
        flat = rows.flatten()
        tiles = x.transpose(0, 1).index_select(1, flat.clamp(min=0)).to(self.dtype)
        tiles.index_fill_(1, (flat < 0).nonzero().squeeze(1), 0)
        return tiles.view(len(tiles), *rows.shape, x.shape[-1])

    def _query_rows(self, tiles: Tensor) -> Tensor:
        """(h, T, 64, ...) -> (N, h, ...): each query row is in exactly one tile."""
        flat = self.q_rows.flatten()
        real = (flat >= 0).nonzero().squeeze(1)
        place = torch.empty_like(real).index_copy_(0, flat[real], real)
        return tiles.flatten(1, 2).index_select(1, place).transpose(0, 1)

    def _key_rows(self, tiles: Tensor) -> Tensor:
        """(h, T, 64, D) -> (K, h, D): the sum over the tiles that hold a key, none or several."""
        flat = self.k_rows.flatten()
        real = (flat >= 0).nonzero().squeeze(1)
        total = tiles.new_zeros(len(tiles), len(self.problem.k), tiles.shape[-1])
        return total.index_add_(1, flat[real], tiles.flatten(1, 2).index_select(1, real)).transpose(0, 1)

    def _step(self, chunk: Chunk) -> _Step:
        """Gathers one chunk's tiles and scores them, with every term but no mask."""
        entries = self.entries[chunk.entries]  # (T, E, 4)
        keys = self.key[chunk.entries].flatten()
        tile = self.q.index_select(1, chunk.tiles)  # (h, T, 64, D)
        h, t, _, d = tile.shape
        k, v = (x.index_select(1, keys).view(h * t, -1, x.shape[-1]) for x in (self.k, self.v))
        q = tile.view(h * t, 64, d)
        score = torch.bmm(q, k.transpose(1, 2)).view(h, t, 64, -1)
        rank = keep = tanh = None
        if self.terms.relative is not None or self.terms.table is not None:
            rank = self._rank(entries).expand_as(score)
        if rank is not None and self.terms.relative is not None:
            score += self._by_label(tile, self.terms.relative).gather(3, rank)
        if self.problem.softcap is not None:
            tanh = (score / self.problem.softcap).tanh_()
            score = tanh * self.problem.softcap
        if rank is not None and self.terms.table is not None:
            score += self.terms.table.expand(*tile.shape[:3], -1).gather(3, rank)
        if self.multiple:
            score += entries[:, None, :, 2].to(score.dtype).log().repeat_interleave(64, 2)
        forbidden = unpack(~allowed(self.problem.arrays, entries[:, : chunk.masked]))  # (T, M, 64, 64)
        if self.problem.seed is not None:
            row = self.row_hash[:, chunk.tiles].unsqueeze(-1)
            keep = kept(row, self.key_hash[keys].view(t, 1, -1), self.problem.dropout)
        masked = score[..., : chunk.masked * 64]
        forbidden = forbidden.transpose(1, 2).flatten(2)
        return _Step(chunk.tiles, keys, q, k, v, score, masked, forbidden, rank, keep, tanh)

    def _rank(self, entries: Tensor) -> Tensor:
        """The place of each pair's label in this group's list: (T, 64, E * 64)."""
        ranks = self.problem.arrays.label_tiles[entries[..., 3]].transpose(1, 2).flatten(2).long()
        return ranks.clamp_(0, len(self.labels) - 1)  # ramps run past the list at forbidden pairs

    def _by_label(self, tile: Tensor, relative: Tensor) -> Tensor:
        """What the relative keys add for each label: (h, T, 64, D) -> (h, T, 64, L)."""
        query = tile if self.terms.content is None else tile + self.terms.content
        return torch.matmul(query, relative.transpose(1, 2).unsqueeze(1))

    def forward(self) -> tuple[Tensor, Tensor]:
        """(N, h, Dv) and (N, h): out and lse of this group's heads."""
        out = self.q.new_zeros(*self.q.shape[:3], self.v.shape[-1])
        lse = self.q.new_full(self.q.shape[:3], -torch.inf)
        for chunk in self.chunks:
            part = self._attend(self._step(chunk))
            if not chunk.first:
                part = merge((out[:, chunk.tiles], lse[:, chunk.tiles]), part)
            out[:, chunk.tiles], lse[:, chunk.tiles] = part
        return self._query_rows(out), self._query_rows(lse)

    def _attend(self, step: _Step) -> tuple[Tensor, Tensor]:
        """One chunk's (out, lse): (h, T, 64, Dv) and (h, T, 64)."""
        step.masked.masked_fill_(step.forbidden, -torch.inf)
        peak = step.score.amax(-1, keepdim=True)
        peak.masked_fill_(peak == -torch.inf, 0)
        weight = step.score.sub_(peak).exp_()
        total = weight.sum(-1, keepdim=True)
        empty = total == 0
        total.masked_fill_(empty, 1)
        if step.keep is not None:
            weight *= step.keep
        out = torch.bmm(weight.flatten(0, 1), step.v).view(*total.shape[:3], -1)
        out /= total * (1 - self.problem.dropout)
        return out, (peak + total.log_()).masked_fill_(empty, -torch.inf).squeeze(-1)

    def add_gradients(self, total: Gradients, grad_out: Tensor, lse: Tensor, mean: Tensor) -> None:
        """Writes this group's heads into the gradients; lse (N, H, 1) is +inf for rows that saw nothing."""
        out, lse, mean = (self._tiles(x[:, self.heads], self.q_rows) for x in (grad_out, lse, mean))
        grad_q, grad_k, grad_v = (torch.zeros_like(x) for x in (self.q, self.k, self.v))
        terms = _Terms(*(x if x is None else torch.zeros_like(x) for x in self.terms))
        for chunk in self.chunks:
            at, step = chunk.tiles, self._step(chunk)
            grad_tiles = out.index_select(1, at).flatten(0, 1)
            weight, grad_score = self._score_gradient(step, grad_tiles, lse[:, at], mean[:, at])
            by_label = None if step.rank is None else self._sums(step.rank, grad_score)
            if by_label is not None and terms.table is not None:
                terms.table.add_(by_label.sum((1, 2), keepdim=True))
            if step.tanh is not None:
                grad_score *= 1 - step.tanh.square()
                by_label = None if step.rank is None else self._sums(step.rank, grad_score)
            to_query = torch.bmm(grad_score.flatten(0, 1), step.k).view(-1, len(at), *self.q.shape[2:])
            if by_label is not None and self.terms.relative is not None:
                to_query += self._add_relative(terms, self.terms.relative, step.q, by_label)
            grad_q.index_add_(1, at, to_query)
            for sums, left, right in ((grad_k, grad_score, step.q), (grad_v, weight, grad_tiles)):
                part = torch.bmm(left.flatten(0, 1).transpose(1, 2), right)
                sums.index_add_(1, step.keys, part.view(len(sums), -1, *sums.shape[2:]))
        total.q[:, self.heads] = self._query_rows(grad_q.mul_(self.problem.scale)).to(total.q.dtype)
        for sums, tiles in ((total.k, grad_k), (total.v, grad_v)):
            if isinstance(self.key_heads, slice):
                sums[:, self.key_heads] = self._key_rows(tiles)
            else:
                sums.index_add_(1, self.key_heads, self._key_rows(tiles))
        self._write_terms(total, terms)

    def _score_gradient(
        self, step: _Step, grad_out: Tensor, lse: Tensor, mean: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One chunk's probabilities after dropout, and the gradient of its scores."""
        weight = step.score.sub_(lse).exp_()
        step.masked.masked_fill_(step.forbidden, 0)
        grad_weight = torch.bmm(grad_out, step.v.transpose(1, 2)).view_as(weight)
        if step.keep is None:
            return weight, grad_weight.sub_(mean).mul_(weight)
        keep = step.keep.to(weight.dtype).div_(1 - self.problem.dropout)
        grad_score = grad_weight.mul_(keep).sub_(mean).mul_(weight)
        return weight.mul_(keep), grad_score

    def _sums(self, rank: Tensor, grad_score: Tensor) -> Tensor:
        """Sums over the keys of each label: (h, T, 64, E * 64) -> (h, T, 64, L)."""
        by_label = grad_score.new_zeros(*grad_score.shape[:3], len(self.labels))
        return by_label.scatter_add_(3, rank, grad_score)

    def _add_relative(self, sums: _Terms, relative: Tensor, q: Tensor, by_label: Tensor) -> Tensor:
        """Adds one chunk to the gradients of relative keys; their part of its queries', (h, T, 64, D)."""
        tile = q.view(*by_label.shape[:3], -1)
        query = tile if self.terms.content is None else tile + self.terms.content
        if sums.relative is not None:
            sums.relative.add_(torch.bmm(by_label.flatten(1, 2).transpose(1, 2), query.flatten(1, 2)))
        to_query = torch.matmul(by_label, relative.unsqueeze(1))
        if sums.content is not None:
            sums.content.add_(to_query.sum((1, 2), keepdim=True))
        return to_query

    def _write_terms(self, total: Gradients, sums: _Terms) -> None:
        place = self.labels[:, None], self.head_numbers
        if total.relative is not None and sums.relative is not None:
            total.relative[place] = sums.relative.transpose(0, 1).to(total.relative.dtype)
        if total.table is not None and sums.table is not None:
            total.table[place] = sums.table[:, 0, 0].T.to(total.table.dtype)
        if total.content is not None and sums.content is not None:
            total.content[self.heads] = (sums.content[:, 0, 0] * self.problem.scale).to(total.content.dtype)


def _groups(problem: Problem) -> Iterator[_Group]:
    """The heads by class; none if no pair is allowed at all."""
    arrays = problem.arrays
    if len(arrays.entries):
        kinds = arrays.head_class.tolist()
        for kind in range(len(arrays.class_start) - 1):
            heads = [head for head, its_kind in enumerate(kinds) if its_kind == kind]
            for begin in range(0, len(heads), HEADS):
                yield _Group(problem, heads[begin : begin + HEADS], kind)
