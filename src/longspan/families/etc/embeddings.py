"""The first hidden states of two streams: one vocabulary, one table of types, a norm for each stream."""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.layout import Layout
from longspan.nn.embeddings import check
from longspan.nn.linear import linear, new_linear
from longspan.nn.norm import LayerNorm
from longspan.nn.sites import positions, tensor
from longspan.structure.structure import Structure

if TYPE_CHECKING:
    from longspan.families.etc.model import EtcConfig


class StreamEmbeddings(nn.Module):
    """ids of tokens (N,) and the structure around them to hidden states of both streams (N + G, C).

    With an `embedding_size` words are projected to C first. Where positions are `absolute`, place p reads row
    p + `position_offset` of its stream's own table.
    """

    def __init__(self, config: "EtcConfig") -> None:
        super().__init__()
        width, size, rows = config.width, config.embedding_size, config.positions + config.position_offset
        self.words = nn.Embedding(config.vocab_size, width if size is None else size)
        self.projection = None if size is None else new_linear(size, width)
        self.types = nn.Embedding(config.token_types, width)
        self.positions, self.global_positions = (
            nn.Embedding(rows, width) if config.absolute else None for _ in range(2)
        )
        self.norm, self.global_norm = (LayerNorm(width, config.norm_eps) for _ in range(2))
        self.limit, self.offset = config.positions if config.absolute else None, config.position_offset
        self.usual, self.dropout = (config.long_type, config.global_type), config.dropout

    def rows(self, structure: Structure) -> "StreamRows":
        """What is read of a structure, checked."""
        long, top, device = structure.long, structure.globals, self.words.weight.device
        place = top.sites.position - long.lengths[top.sites.document]  # counted in the stream
        words, types = tensor(structure.words, device), structure.types
        kinds = None if types is None else tensor(types, device)
        check(words, top, kinds, self.words, self.types, None)
        return StreamRows(long, words, kinds, tensor(place, device))

    def forward(self, ids: Tensor, rows: "StreamRows", token_types: Tensor | None = None) -> Tensor:
        if isinstance(rows.long, Layout):
            check(ids, rows.long, token_types, self.words, self.types, self.limit)
        x = self._embedded(ids, token_types, positions(rows.long, ids.device), 0)
        return torch.cat([x, self._embedded(rows.words, rows.types, rows.places, 1)])

    def _embedded(self, ids: Tensor, types: Tensor | None, place: Tensor, stream: int) -> Tensor:
        x = self.words(ids)  # (N,) -> (N, C)
        x = x if self.projection is None else linear(self.projection, x)
        x = x + (self.types.weight[self.usual[stream]] if types is None else self.types(types))
        table = self.global_positions if stream else self.positions
        if table is not None:
            x = x + table(place + self.offset)
        norm = self.global_norm if stream else self.norm
        return F.dropout(norm(x), self.dropout, self.training)


class StreamRows(NamedTuple):
    """What the embeddings of two streams read of a structure."""

    long: Layout | Tensor
    "The tokens, or their positions (N,)."
    words: Tensor
    "(G,) ids of the global tokens."
    types: Tensor | None
    "(G,) their types, None for the usual one."
    places: Tensor
    "(G,) their places in the stream."
