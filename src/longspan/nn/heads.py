"""Heads on a backbone: each takes hidden states (N, C), the layout and the token types."""

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.errors import bad, one_of
from longspan.layout import Layout
from longspan.nn.activations import activation
from longspan.nn.encoder import FeedForward
from longspan.nn.linear import Linear, wide
from longspan.nn.norm import LayerNorm
from longspan.nn.rows import ROWS
from longspan.nn.sites import Rows, ends, first_rows, tensor

POOLINGS = ("mean", "first", "max", "sif")
HIDDEN = 1e6
"""Taken from the scores of question tokens."""


class MaskedLanguageHead(nn.Module):
    """The word at each row: (N, C) -> (N, vocab). The decoder's weight is the embedding's, of its size."""

    def __init__(self, width: int, words: nn.Embedding, *, act: str, eps: float) -> None:
        super().__init__()
        vocab, size = words.weight.shape
        self.dense = Linear(width, size)
        self.norm = LayerNorm(size, eps)
        self.decoder = Linear(size, vocab)
        self.decoder.weight = cast(nn.Parameter, words.weight)
        self.act = activation(act)

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        return self.decoder(self.norm(self.act(self.dense(x))))  # type: ignore[no-any-return]


class LMHead(nn.Module):
    """The word after each row: (N, C) -> (N, vocab). The decoder's weight is the embedding's."""

    def __init__(self, words: nn.Embedding) -> None:
        super().__init__()
        vocab, size = words.weight.shape
        self.decoder = Linear(size, vocab, bias=False)
        self.decoder.weight = cast(nn.Parameter, words.weight)
        self.bias = nn.Buffer(torch.zeros(1, vocab))  # not trained, but part of published files

    def forward(self, x: Tensor) -> Tensor:
        return self.decoder(wide(x), plus=wide(self.bias).expand(x.shape[0], -1))  # type: ignore[no-any-return]


class FirstTokenHead(nn.Module):
    """Numbers for each document, read from its first token: (N, C) -> (documents, labels)."""

    def __init__(self, width: int, labels: int, *, act: str, dropout: float, drop_first: bool) -> None:
        super().__init__()
        self.dense, self.out = Linear(width, width), Linear(width, labels)
        self.act, self.dropout, self.drop_first = activation(act), dropout, drop_first

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        x = x[self.rows(layout, x.device)]  # (N, C) -> (documents, C)
        if self.drop_first:
            x = F.dropout(x, self.dropout, self.training)
        x = F.dropout(self.act(self.dense(x)), self.dropout, self.training)
        return self.out(x)  # type: ignore[no-any-return]

    def rows(self, layout: Layout | Rows, device: torch.device) -> Tensor:
        """The rows that are read, (documents,)."""
        return first(layout, device)


class LastTokenHead(FirstTokenHead):
    """The same, read from the last token of each document, which alone has seen all of it in a decoder."""

    def rows(self, layout: Layout | Rows, device: torch.device) -> Tensor:
        return layout.last if isinstance(layout, Rows) else tensor(ends(layout)[1], device)


class TokenHead(nn.Module):
    """Numbers for each token: (N, C) -> (N, labels)."""

    def __init__(self, width: int, labels: int, *, dropout: float) -> None:
        super().__init__()
        self.out, self.dropout = Linear(width, labels), dropout

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        return self.out(F.dropout(x, self.dropout, self.training))  # type: ignore[no-any-return]


class SpanHead(nn.Module):
    """Scores of each token as the start and as the end of the answer: (N, C) -> (N, 2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = Linear(width, 2)

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        return self.out(x)  # type: ignore[no-any-return]


class DeepSpanHead(nn.Module):
    """One more feed-forward block, and the question (type 0, but the first token) hidden."""

    def __init__(self, width: int, inner: int, *, act: str, eps: float, dropout: float) -> None:
        super().__init__()
        self.feed_forward = FeedForward(width, inner, act)
        self.norm, self.out = LayerNorm(width, eps), Linear(width, 2)
        self.dropout = dropout

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        inner = self.feed_forward(F.dropout(x, self.dropout, self.training))
        scores: Tensor = self.out(self.norm(x + F.dropout(inner, self.dropout, self.training)))
        if token_types is None:
            return scores
        question = token_types == 0
        question[first(layout, x.device)] = False
        return scores - HIDDEN * question.unsqueeze(1)


class PoolingHead(nn.Module):
    """One vector for each document: (N, C) -> (documents, C), the mean, maximum or first of its tokens.

    "sif" is the mean weighted by a number for each of the `words` of the vocabulary. `pooler` keeps the dense
    layer that was pretrained on the first token.
    """

    def __init__(
        self,
        width: int,
        *,
        pooling: str = "mean",
        normalize: bool = False,
        pooler: bool = False,
        words: int | None = None,
    ) -> None:
        super().__init__()
        one_of("pooling", pooling, POOLINGS)
        if pooling == "sif" and words is None:
            raise bad("pooling", "another one for a model without SIF weights", pooling)
        self.pooling, self.normalize = pooling, normalize
        self.dense = Linear(width, width) if pooler else None
        self.sif = None if words is None else nn.Embedding(words, 1)
        for unused in (self.dense, None if pooling == "sif" else self.sif):
            if unused is not None:
                unused.requires_grad_(False)  # kept as it is: nothing is computed with it

    def weights(self, ids: Tensor, pooling: str | None = None) -> Tensor | None:
        """How much each token counts (N,), None if all count alike."""
        if (pooling or self.pooling) != "sif" or self.sif is None:
            return None
        weights: Tensor = self.sif(ids).squeeze(1)
        return weights

    def forward(self, x: Tensor, layout: Layout | Rows, weights: Tensor | None = None) -> Tensor:
        vectors = pool(x, layout, self.pooling, weights)
        return F.normalize(vectors, dim=-1) if self.normalize else vectors


def pool(x: Tensor, layout: Layout | Rows, how: str, weights: Tensor | None = None) -> Tensor:
    """The tokens of each document as one vector: (N, C) -> (documents, C); by `weights` (N,) if "sif"."""
    if how == "first":
        return x[first(layout, x.device)]
    if isinstance(layout, Rows):
        return _pooled(x, layout, how, weights)
    site = layout.sites
    rows = np.flatnonzero(site.exists)
    lengths = np.bincount(site.document[rows], minlength=layout.documents).tolist()
    if 0 in lengths:
        raise bad("document", "at least one token long", 0)
    if len(rows) < len(x):
        kept = torch.from_numpy(rows).to(x.device)
        x, weights = x[kept], None if weights is None else weights[kept]
    documents = x.split(lengths)
    if how == "max":
        return _stacked([document.amax(0) for document in documents], x)
    if how == "mean":
        return _stacked([document.mean(0) for document in documents], x)
    assert weights is not None
    shares = weights.to(x.dtype).split(lengths)
    return _stacked([_mean(*both) for both in zip(documents, shares, strict=True)], x)


def _pooled(x: Tensor, rows: Rows, how: str, weights: Tensor | None) -> Tensor:
    """The same inside a graph, which must not depend on how many documents there are, or how long."""
    sums, document = x.new_zeros(rows.first.shape[0], x.shape[1]), rows.documents
    if how == "max":
        seen = x.masked_fill(~rows.exists.unsqueeze(1), -torch.inf)
        place = document.unsqueeze(1).expand_as(x)
        return sums.scatter_reduce(0, place, seen, "amax", include_self=False)
    share = rows.exists.to(x.dtype)
    share = share if weights is None else share * weights.to(x.dtype)
    total = share.new_zeros(rows.first.shape[0]).index_add(0, document, share)
    return sums.index_add(0, document, x * share.unsqueeze(1)) / total.unsqueeze(1)


def first(layout: Layout | Rows, device: torch.device) -> Tensor:
    """The row of each document's first token, (documents,)."""
    return layout.first if isinstance(layout, Rows) else tensor(first_rows(layout), device)


def _mean(x: Tensor, share: Tensor) -> Tensor:
    """(n, C) by shares (n,), a few rows at a time: the products stay in the cache."""
    pieces = zip(x.split(ROWS), share.split(ROWS), strict=True)
    return torch.stack([(rows * part.unsqueeze(1)).sum(0) for rows, part in pieces]).sum(0) / share.sum()


def _stacked(vectors: Sequence[Tensor], x: Tensor) -> Tensor:
    return torch.stack(list(vectors)) if vectors else x[:0]
