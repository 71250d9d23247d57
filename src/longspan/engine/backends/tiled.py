"""Attention over a plan in portable torch: chunks of query tiles as batched matrix products, on any device."""

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

    def refuses(self, problem: Problem) -> list[str]:
        return [] if problem.q.dtype in DTYPES else [f"does not know {problem.q.dtype}"]

    def forward(self, problem: Problem) -> tuple[Tensor, Tensor]:
        q = problem.q
        out = q.new_zeros(q.shape)
        lse = q.new_full(q.shape[:2], -torch.inf, dtype=arithmetic(q.dtype))
        for group in _groups(problem):
            out[:, group.heads], lse[:, group.heads] = group.forward()
        return out, lse

    def backward(
        self, problem: Problem, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None
    ) -> Gradients:
        inputs = (problem.q, problem.k, problem.v, problem.relative, problem.content, problem.table)
        total = Gradients(*(x if x is None else x.new_zeros(x.shape) for x in inputs))  # type: ignore[arg-type]
        empty = lse == -torch.inf
        pull = (out.to(lse.dtype) * grad_out).sum(-1)  # (N, H): what the softmax subtracts
        pull = pull if grad_lse is None else (pull - grad_lse).masked_fill_(empty, 0)
        lse = lse.masked_fill(empty, torch.inf)[..., None]  # exp(score - inf) is 0
        for group in _groups(problem):
            part = group.backward(grad_out, lse, pull[..., None])
            total.q[:, group.heads], total.k[:, group.heads], total.v[:, group.heads] = part.q, part.k, part.v
            for whole, piece in ((total.relative, part.relative), (total.table, part.table)):
                if whole is not None and piece is not None:
                    whole[group.labels[:, None], group.head_numbers] = piece.to(whole.dtype)
            if total.content is not None and part.content is not None:
                total.content[group.heads] = part.content.to(total.content.dtype)
        return total


class _Step(NamedTuple):
    """One chunk's operands and scores."""

    q: Tensor  # (h * T, 64, D), scaled
    k: Tensor  # (h * T, E * 64, D)
    v: Tensor  # (h * T, E * 64, D)
    score: Tensor  # (h, T, 64, E * 64)
    key: Tensor  # (T * E,) key tiles
    forbidden: Tensor  # (T, 64, M * 64) bool, for the entries that need a mask
    keep: Tensor | None  # (h, T, 64, E * 64) bool
    rank: Tensor | None  # (h, T, 64, E * 64) int64


class _Group:
    """Heads that share their tile lists, with their rows gathered into tiles."""

    def __init__(self, problem: Problem, heads: list[int], kind: int) -> None:
        arrays, self.problem = problem.arrays, problem
        device = problem.q.device
        self.dtype = arithmetic(problem.q.dtype)
        self.head_numbers = torch.tensor(heads, device=device)
        in_a_row = heads[-1] - heads[0] == len(heads) - 1
        self.heads = slice(heads[0], heads[-1] + 1) if in_a_row else self.head_numbers
        first, last = arrays.class_start[kind : kind + 2].tolist()
        start = arrays.entry_start[first : last + 1].long()
        entries = arrays.entries[start[0] : start[-1]].long()
        used, key = torch.unique(entries[:, 0], return_inverse=True)
        self.key = torch.cat([key, key.new_tensor([len(used)])])
        self.entries = torch.cat([entries, entries.new_tensor([[0, -2, 1, 0]])])  # number -1 sees nothing
        whole = arrays.k_rows[:, -1] >= 0
        columns = (x.cpu().numpy() for x in (entries, start - start[0], whole))
        self.chunks = chunks(*columns, heads=len(heads))
        self.q_rows = arrays.q_rows[first:last].long()
        self.k_rows = torch.cat([arrays.k_rows[used].long(), key.new_full((1, 64), -1)])
        self.q = self._tiles(problem.q, self.q_rows) * problem.scale
        self.k, self.v = self._tiles(problem.k, self.k_rows), self._tiles(problem.v, self.k_rows)
        self.multiple = bool((entries[:, 2] != 1).any())
        low, high = arrays.label_start[kind : kind + 2].tolist()
        self.labels = arrays.label_list[low:high].long()
        self._take_terms()
        self._hash_rows()

    def _tiles(self, x: Tensor, rows: Tensor) -> Tensor:
        """(N, H, D) -> (h, T, 64, D), 0 at padding."""
        flat = rows.flatten()
        tiles = x[:, self.heads].transpose(0, 1).index_select(1, flat.clamp(min=0)).to(self.dtype)
        tiles.index_fill_(1, (flat < 0).nonzero().squeeze(1), 0)
        return tiles.unflatten(1, rows.shape)

    def _rows(self, tiles: Tensor, rows: Tensor, size: int) -> Tensor:
        """(h, T, 64, ...) -> (N, h, ...): the sum of what the tiles hold for each row."""
        flat = rows.flatten()
        real = (flat >= 0).nonzero().squeeze(1)
        total = tiles.new_zeros(size, tiles.shape[0], *tiles.shape[3:])
        return total.index_add_(0, flat[real], tiles.flatten(1, 2).index_select(1, real).transpose(0, 1))

    def _take_terms(self) -> None:
        problem = self.problem
        self.relative = self.content = self.table = None
        if problem.relative is not None:
            self.relative = problem.relative[self.labels][:, self.heads].transpose(0, 1).to(self.dtype)  # (h, L, D)
        if problem.content is not None:
            self.content = problem.content[self.heads, None, None].to(self.dtype) * problem.scale  # (h, 1, 1, D)
        if problem.table is not None:
            self.table = problem.table[self.labels][:, self.heads].T[:, None, None].to(self.dtype)  # (h, 1, 1, L)

    def _hash_rows(self) -> None:
        if self.problem.seed is not None:
            arrays = self.problem.arrays
            document, position = arrays.q_sites[self.q_rows].unbind(-1)  # padding reads the last row, in vain
            head = self.head_numbers.to(torch.int32)[:, None, None]
            self.row_hash = row_hash(self.problem.seed, document, position, head)  # (h, T, 64)
            self.key_hash = key_hash(arrays.k_positions[self.k_rows])  # (KT, 64)

    def _step(self, chunk: Chunk) -> _Step:
        """Gathers one chunk's tiles and scores them, with every term but no mask."""
        entries = self.entries[chunk.entries]  # (T, E, 4)
        key = self.key[chunk.entries].flatten()
        tile = self.q.index_select(1, chunk.tiles)  # (h, T, 64, D)
        h, t, _, d = tile.shape
        k, v = (x.index_select(1, key).view(h * t, -1, d) for x in (self.k, self.v))
        q = tile.view(h * t, 64, d)
        score = torch.bmm(q, k.transpose(1, 2)).view(h, t, 64, -1)
        rank = None
        if self.relative is not None or self.table is not None:
            rank = self._rank(entries).expand_as(score)
            score += self._by_label(tile).gather(3, rank)
        if self.multiple:
            score += entries[:, None, :, 2].to(score.dtype).log().repeat_interleave(64, 2)
        forbidden = unpack(~allowed(self.problem.arrays, entries[:, : chunk.masked]))  # (T, M, 64, 64)
        keep = None
        if self.problem.seed is not None:
            row = self.row_hash[:, chunk.tiles].unsqueeze(-1)
            keep = kept(row, self.key_hash[key].view(t, 1, -1), self.problem.dropout)
        return _Step(q, k, v, score, key, forbidden.transpose(1, 2).flatten(2), keep, rank)

    def _rank(self, entries: Tensor) -> Tensor:
        """The place of each pair's label in this group's list: (T, 64, E * 64)."""
        ranks = self.problem.arrays.label_tiles[entries[..., 3]].transpose(1, 2).flatten(2).long()
        return ranks.clamp_(0, len(self.labels) - 1)  # ramps run past the list at forbidden pairs

    def _by_label(self, tile: Tensor) -> Tensor:
        """What each query adds for each label: (h, T, 64, D) -> (h, T, 64, L)."""
        if self.relative is None:
            return self.table.expand(*tile.shape[:3], -1)
        query = tile if self.content is None else tile + self.content
        bias = torch.matmul(query, self.relative.transpose(1, 2).unsqueeze(1))
        return bias if self.table is None else bias + self.table

    def forward(self) -> tuple[Tensor, Tensor]:
        out = torch.zeros_like(self.q)
        lse = self.q.new_full(self.q.shape[:3], -torch.inf)
        for chunk in self.chunks:
            part = self._attend(self._step(chunk), chunk.masked * 64)
            if not chunk.first:
                part = merge((out[:, chunk.tiles], lse[:, chunk.tiles]), part)
            out[:, chunk.tiles], lse[:, chunk.tiles] = part
        size = len(self.problem.q)
        return self._rows(out, self.q_rows, size), self._rows(lse, self.q_rows, size)

    def _attend(self, step: _Step, masked: int) -> tuple[Tensor, Tensor]:
        """One chunk's (out, lse), (h, T, 64, D) and (h, T, 64); the first `masked` columns need the mask."""
        score = step.score
        score[..., :masked].masked_fill_(step.forbidden, -torch.inf)
        peak = score.amax(-1, keepdim=True)
        peak.masked_fill_(peak == -torch.inf, 0)
        weight = score.sub_(peak).exp_()
        total = weight.sum(-1, keepdim=True)
        if step.keep is not None:
            weight *= step.keep
        empty = total == 0
        total.masked_fill_(empty, 1)
        out = torch.bmm(weight.flatten(0, 1), step.v).view(*total.shape[:3], -1)
        out /= total * (1 - self.problem.dropout)
        return out, (peak + total.log_()).masked_fill_(empty, -torch.inf).squeeze(-1)

    def backward(self, grad_out: Tensor, lse: Tensor, pull: Tensor) -> Gradients:
        """Gradients of this group's heads; lse (N, H, 1) is +inf for rows that saw nothing."""
        grad_out, lse, pull = (self._tiles(x, self.q_rows) for x in (grad_out, lse, pull))
        grad_q, grad_k, grad_v = (torch.zeros_like(x) for x in (self.q, self.k, self.v))
        terms = [torch.zeros_like(x) if x is not None else None for x in (self.relative, self.content, self.table)]
        for chunk in self.chunks:
            at, step = chunk.tiles, self._step(chunk)
            out = grad_out.index_select(1, at).flatten(0, 1)
            weight, grad_score = self._score_gradient(step, chunk.masked * 64, out, lse[:, at], pull[:, at])
            flat = grad_score.flatten(0, 1)
            to_query = torch.bmm(flat, step.k).view(-1, len(at), *self.q.shape[2:])
            if step.rank is not None:
                to_query += self._return_terms(step, grad_score, terms)
            grad_q.index_add_(1, at, to_query)
            for total, left, right in ((grad_k, flat, step.q), (grad_v, weight.flatten(0, 1), out)):
                part = torch.bmm(left.transpose(1, 2), right)
                total.index_add_(1, step.key, part.view(len(total), -1, *total.shape[2:]))
        scale, (n, k) = self.problem.scale, (len(self.problem.q), len(self.problem.k))
        relative, content, table = terms
        return Gradients(
            self._rows(grad_q.mul_(scale), self.q_rows, n),
            self._rows(grad_k, self.k_rows, k),
            self._rows(grad_v, self.k_rows, k),
            None if relative is None else relative.transpose(0, 1),
            None if content is None else content[:, 0, 0] * scale,
            None if table is None else table[:, 0, 0].T,
        )

    def _score_gradient(
        self, step: _Step, masked: int, grad_out: Tensor, lse: Tensor, pull: Tensor
    ) -> tuple[Tensor, Tensor]:
        """One chunk's probabilities as they weighed the values, and the gradient of its scores."""
        weight = step.score.sub_(lse).exp_()
        weight[..., :masked].masked_fill_(step.forbidden, 0)
        grad_weight = torch.bmm(grad_out, step.v.transpose(1, 2)).view_as(weight)
        if step.keep is None:
            return weight, grad_weight.sub_(pull).mul_(weight)
        keep = step.keep.to(weight.dtype).div_(1 - self.problem.dropout)
        grad_score = grad_weight.mul_(keep).sub_(pull).mul_(weight)
        return weight.mul_(keep), grad_score

    def _return_terms(self, step: _Step, grad_score: Tensor, totals: list[Tensor | None]) -> Tensor | float:
        """Adds one chunk to the terms' gradients; what comes back to its queries, (h, T, 64, D)."""
        relative, content, table = totals
        by_label = grad_score.new_zeros(*grad_score.shape[:3], len(self.labels))
        by_label.scatter_add_(3, step.rank, grad_score)
        if table is not None:
            table += by_label.sum((1, 2), keepdim=True)
        if relative is None:
            return 0.0
        tile = step.q.view(*by_label.shape[:3], -1)
        query = tile if self.content is None else tile + self.content
        relative += torch.bmm(by_label.flatten(1, 2).transpose(1, 2), query.flatten(1, 2))
        to_query = torch.matmul(by_label, self.relative.unsqueeze(1))
        if content is not None:
            content += to_query.sum((1, 2), keepdim=True)
        return to_query


def _groups(problem: Problem) -> Iterator[_Group]:
    """The heads, cut where their classes differ; nothing if no pair is allowed at all."""
    arrays = problem.arrays
    if len(arrays.entries):
        kinds = arrays.head_class.tolist()
        for kind in range(len(arrays.class_start) - 1):
            heads = [head for head, one in enumerate(kinds) if one == kind]
            for begin in range(0, len(heads), HEADS):
                yield _Group(problem, heads[begin : begin + HEADS], kind)
