"""The first hidden states of two streams: one vocabulary, one table of types, a norm for each stream."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.layout import Layout
from longspan.nn.embeddings import check
from longspan.nn.encoder import LayerConfig
from longspan.nn.linear import Linear
from longspan.shapes import IntArray
from longspan.structure.structure import Structure


class StreamEmbeddings(nn.Module):
    """ids of tokens (N,) and the structure around them to hidden states of both streams (N + G, C).

    With an `embedding_size` words are projected to C before anything is added (ALBERT). With 0 `positions` places
    are not told; else place p reads row p + `offset` of its stream's own table. `usual` are the types of
    tokens and of global tokens where none are given.
    """

    def __init__(
        self,
        like: LayerConfig,
        *,
        vocab: int,
        token_types: int,
        usual: tuple[int, int],
        positions: int = 0,
        offset: int = 0,
        embedding_size: int | None = None,
    ) -> None:
        super().__init__()
        width = like.width
        self.words = nn.Embedding(vocab, width if embedding_size is None else embedding_size)
        self.projection = None if embedding_size is None else Linear(embedding_size, width)
        self.types = nn.Embedding(token_types, width)
        self.positions, self.global_positions = (
            nn.Embedding(positions + offset, width) if positions else None for _ in range(2)
        )
        self.norm, self.global_norm = (nn.LayerNorm(width, like.eps) for _ in range(2))
        self.limit, self.offset, self.usual, self.dropout = positions or None, offset, usual, like.dropout

    def forward(self, ids: Tensor, structure: Structure, token_types: Tensor | None = None) -> Tensor:
        long, top = structure.long, structure.globals
        place = top.sites.position - long.lengths[top.sites.document]  # counted in the stream
        words, kinds = _tensor(structure.words, ids), None
        if structure.types is not None:
            kinds = _tensor(structure.types, ids)
        x = self._embedded(ids, token_types, long, long.sites.position, 0)
        return torch.cat([x, self._embedded(words, kinds, top, place, 1)])

    def _embedded(
        self, ids: Tensor, types: Tensor | None, layout: Layout, place: IntArray, stream: int
    ) -> Tensor:
        check(ids, layout, types, self.words, self.types, None if stream else self.limit)
        x = self.words(ids)  # (N,) -> (N, C)
        x = x if self.projection is None else self.projection(x)
        x = x + (self.types.weight[self.usual[stream]] if types is None else self.types(types))
        table = self.global_positions if stream else self.positions
        if table is not None:
            x = x + table(_tensor(place, ids) + self.offset)
        norm = self.global_norm if stream else self.norm
        return F.dropout(norm(x), self.dropout, self.training)


def _tensor(column: IntArray, like: Tensor) -> Tensor:
    return torch.from_numpy(column.astype("int64")).to(like.device)
