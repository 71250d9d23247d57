"""Heads on a backbone: each takes hidden states (N, C), the layout and the token types."""

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.errors import bad, one_of
from longspan.layout import Layout
from longspan.native import is_traced
from longspan.nn.activations import activation
from longspan.nn.feed_forward import FeedForward
from longspan.nn.linear import linear, new_linear, wide
from longspan.nn.norm import LayerNorm, Norm
from longspan.nn.projection import Projection
from longspan.nn.rows import ROWS
from longspan.nn.sites import Rows, ends, first_rows, tensor

POOLINGS = ("mean", "first", "max", "sif")
HIDDEN = 1e6
"""Taken from the scores of question tokens."""


class MaskedLanguageHead(nn.Module):
    """The word at each row: (N, C) -> (N, vocab). The decoder's weight is the embedding's, of its size."""

    def __init__(
        self,
        width: int,
        words: nn.Embedding,
        *,
        act: str,
        eps: float,
        norm: Norm = LayerNorm,
        bias: bool = True,
        decoder_bias: bool = True,
    ) -> None:
        super().__init__()
        vocab, size = words.weight.shape
        self.dense = new_linear(width, size, bias=bias)
        self.norm = norm(size, eps)
        self.decoder = new_linear(size, vocab, bias=decoder_bias)
        self.decoder.weight = cast(nn.Parameter, words.weight)
        self.act = activation(act)

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        return linear(self.decoder, self.states(x))

    def states(self, x: Tensor) -> Tensor:
        """What words are scored by."""
        return self.norm(linear(self.dense, x, then=self.act))  # type: ignore[no-any-return]


class WordHead(nn.Module):
    """The word at each row by one linear layer, (N, C) -> (N, vocab), which need not be the embeddings."""

    def __init__(self, width: int, vocab: int, *, bias: bool = False) -> None:
        super().__init__()
        self.decoder = new_linear(width, vocab, bias=bias)

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        return linear(self.decoder, x)


class LMHead(nn.Module):
    """The word after each row: (N, C) -> (N, vocab). The decoder's weight is the embedding's."""

    def __init__(self, words: nn.Embedding) -> None:
        super().__init__()
        vocab, size = words.weight.shape
        self.decoder = new_linear(size, vocab, bias=False)
        self.decoder.weight = cast(nn.Parameter, words.weight)
        self.bias = nn.Buffer(torch.zeros(1, vocab))  # not trained, but part of published files

    def forward(self, x: Tensor) -> Tensor:
        return linear(self.decoder, wide(x), plus=wide(self.bias).expand(x.shape[0], -1))


class FirstTokenHead(nn.Module):
    """Numbers for each document, read from its first token: (N, C) -> (documents, labels)."""

    def __init__(self, width: int, labels: int, *, act: str, dropout: float, drop_first: bool) -> None:
        super().__init__()
        self.dense, self.out = new_linear(width, width), new_linear(width, labels)
        self.act, self.dropout, self.drop_first = activation(act), dropout, drop_first

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        x = x[self.rows(layout, x.device)]  # (N, C) -> (documents, C)
        if self.drop_first:
            x = F.dropout(x, self.dropout, self.training)
        x = F.dropout(linear(self.dense, x, then=self.act), self.dropout, self.training)
        return linear(self.out, x)

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
        self.out, self.dropout = new_linear(width, labels), dropout

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        return linear(self.out, F.dropout(x, self.dropout, self.training))


class PredictionHead(nn.Module):
    """Dense layer, activation, norm, dropout and outputs, of each token (N, C) -> (N, outputs).

    With `pooling` ("first", "mean") of each document: (N, C) -> (documents, outputs); "late" is the mean of
    its outputs.
    """

    def __init__(
        self,
        width: int,
        outputs: int,
        *,
        act: str,
        norm: Callable[[int], nn.Module] | None,
        bias: bool = True,
        dropout: float = 0.0,
        pooling: str | None = None,
    ) -> None:
        super().__init__()
        self.dense, self.out = new_linear(width, width, bias=bias), new_linear(width, outputs)
        self.norm = None if norm is None else norm(width)
        self.act, self.dropout, self.pooling = activation(act), dropout, pooling

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        x = pool(x, layout, self.pooling) if self.pooling in ("first", "mean") else x
        x = linear(self.dense, x, then=self.act)
        x = x if self.norm is None else self.norm(x)
        y = linear(self.out, F.dropout(x, self.dropout, self.training))
        return pool(y, layout, "mean") if self.pooling == "late" else y


class SpanHead(nn.Module):
    """Scores of each token as the start and as the end of the answer: (N, C) -> (N, 2)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.out = new_linear(width, 2)

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        return linear(self.out, x)


class DeepSpanHead(nn.Module):
    """One more feed-forward block, and the question (type 0, but the first token) hidden."""

    def __init__(self, width: int, inner: int, *, act: str, eps: float, dropout: float) -> None:
        super().__init__()
        self.feed_forward = FeedForward(width, inner, act)
        self.norm, self.out = LayerNorm(width, eps), new_linear(width, 2)
        self.dropout = dropout

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        inner = self.feed_forward(F.dropout(x, self.dropout, self.training))
        scores = linear(self.out, self.norm(x + F.dropout(inner, self.dropout, self.training)))
        if token_types is None:
            return scores
        question = token_types == 0
        question[first(layout, x.device)] = False
        return scores - HIDDEN * question.unsqueeze(1)


class PoolingHead(nn.Module):
    """One vector for each document: (N, C) -> (documents, C), the mean, maximum or first of its tokens.

    "sif" is the mean weighted by a number for each of the `words` of the vocabulary. `pooler` keeps the dense
    layer that was pretrained on the first token. The vector may go through `projections`.
    """

    def __init__(
        self,
        width: int,
        *,
        pooling: str = "mean",
        normalize: bool = False,
        pooler: bool = False,
        words: int | None = None,
        projections: Sequence[Projection] = (),
    ) -> None:
        super().__init__()
        one_of("pooling", pooling, POOLINGS)
        if pooling == "sif" and words is None:
            raise bad("pooling", "another one for a model without SIF weights", pooling)
        self.pooling, self.normalize = pooling, normalize
        self.dense = new_linear(width, width) if pooler else None
        self.sif = None if words is None else nn.Embedding(words, 1)
        self.width, self.projections = width, nn.ModuleList(projections)
        for unused in (self.dense, None if pooling == "sif" else self.sif):
            if unused is not None:
                unused.requires_grad_(False)  # kept as it is: nothing is computed with it

    def weights(self, ids: Tensor, pooling: str | None = None) -> Tensor | None:
        """How much each token counts (N,), None if all count alike."""
        if (pooling or self.pooling) != "sif" or self.sif is None:
            return None
        weights: Tensor = self.sif(ids).squeeze(1)
        return weights

    @property
    def outputs(self) -> int:
        """Numbers of a vector."""
        last = self.projections[-1] if len(self.projections) else None
        return last.linear.out_features if isinstance(last, Projection) else self.width

    def project(self, vectors: Tensor) -> Tensor:
        """What becomes of pooled vectors before they are normalized, (B, C) -> (B, outputs)."""
        for projection in self.projections:
            vectors = projection(vectors)
        return vectors

    def forward(self, x: Tensor, layout: Layout | Rows, weights: Tensor | None = None) -> Tensor:
        vectors = self.project(pool(x, layout, self.pooling, weights))
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
    """The same inside a graph, which must not depend on how many documents there are, or how long.

    An exporter sees one document, and simpler operators.
    """
    if is_traced():
        return _pooled_alone(x, rows.exists, how, weights)
    sums, document = x.new_zeros(rows.first.shape[0], x.shape[1]), rows.documents
    if how == "max":
        seen = x.masked_fill(~rows.exists.unsqueeze(1), -torch.inf)
        place = document.unsqueeze(1).expand_as(x)
        return sums.scatter_reduce(0, place, seen, "amax", include_self=False)
    share = rows.exists.to(x.dtype)
    share = share if weights is None else share * weights.to(x.dtype)
    total = share.new_zeros(rows.first.shape[0]).index_add(0, document, share)
    return sums.index_add(0, document, x * share.unsqueeze(1)) / total.unsqueeze(1)


def _pooled_alone(x: Tensor, exists: Tensor, how: str, weights: Tensor | None) -> Tensor:
    if how == "max":
        return x.masked_fill(~exists.unsqueeze(1), -torch.inf).amax(0, keepdim=True)
    share = exists.to(x.dtype)
    share = share if weights is None else share * weights.to(x.dtype)
    return (x * share.unsqueeze(1)).sum(0, keepdim=True) / share.sum()


def first(layout: Layout | Rows, device: torch.device) -> Tensor:
    """The row of each document's first token, (documents,)."""
    return layout.first if isinstance(layout, Rows) else tensor(first_rows(layout), device)


def _mean(x: Tensor, share: Tensor) -> Tensor:
    """(n, C) by shares (n,), a few rows at a time: the products stay in the cache."""
    pieces = zip(x.split(ROWS), share.split(ROWS), strict=True)
    return torch.stack([(rows * part.unsqueeze(1)).sum(0) for rows, part in pieces]).sum(0) / share.sum()


def _stacked(vectors: Sequence[Tensor], x: Tensor) -> Tensor:
    return torch.stack(list(vectors)) if vectors else x[:0]
