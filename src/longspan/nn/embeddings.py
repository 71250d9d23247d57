"""Token, position and type embeddings of packed documents."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.errors import bad
from longspan.layout import Layout
from longspan.nn.encoder import LayerConfig
from longspan.nn.linear import linear, new_linear
from longspan.nn.rows import ROWS, own_pages, writes_over
from longspan.nn.sites import positions


class Embeddings(nn.Module):
    """ids (N,) to the first hidden states (N, C): word + position + type, norm and dropout.

    Position p of a document reads row p + `offset` of the table; without `positions` there is no such table,
    and with 0 `token_types` none of these. Tables of another `embedding_size` are projected to C. Words may
    be multiplied by the root of C (`rescale`), rounded to their type (`round_scale`); there may be no `norm`,
    or it comes after dropout (`norm_last`).
    """

    def __init__(
        self,
        like: LayerConfig,
        *,
        vocab: int,
        positions: int | None,
        token_types: int = 0,
        embedding_size: int | None = None,
        offset: int = 0,
        rescale: bool = False,
        round_scale: bool = False,
        norm: bool = True,
        norm_last: bool = False,
        dropout: float | None = None,
    ) -> None:
        super().__init__()
        size = like.width if embedding_size is None else embedding_size
        self.words = nn.Embedding(vocab, size)
        self.positions = None if positions is None else nn.Embedding(positions + offset, size)
        self.types = nn.Embedding(token_types, size) if token_types else None
        self.norm = like.norm(size, like.eps) if norm else None
        self.projection = None if embedding_size is None else new_linear(embedding_size, like.width)
        self.offset, self.limit, self.scale = offset, positions, like.width**0.5 if rescale else 1.0
        self.round_scale = round_scale
        self.dropout, self.norm_last = like.dropout if dropout is None else dropout, norm_last

    def forward(self, ids: Tensor, layout: Layout | Tensor, token_types: Tensor | None = None) -> Tensor:
        """`layout`, or the positions of its rows (N,) inside a graph, where nothing is checked."""
        if isinstance(layout, Layout):
            check(ids, layout, token_types, self.words, self.types, self.limit)
        places = positions(layout, ids.device) + self.offset
        columns = (ids, places) if token_types is None else (ids, places, token_types)
        if not writes_over():
            return self._embedded(*columns)
        width = self.words.embedding_dim if self.projection is None else self.projection.out_features
        whole = own_pages(self.words.weight, len(ids), width)
        for start in range(0, len(ids), ROWS):  # pieces that stay in the cache
            piece = whole[start : start + ROWS]
            rows = self._embedded(*(column[start : start + ROWS] for column in columns), into=piece)
            if rows is not piece:
                piece.copy_(rows)
        return whole

    def _embedded(
        self, ids: Tensor, places: Tensor, types: Tensor | None = None, *, into: Tensor | None = None
    ) -> Tensor:
        """With `into` the result may be written there."""
        if into is None or self.projection is not None or not _is_plain(self.words):
            x: Tensor = self.words(ids)  # (N,) -> (N, C)
            into = None
        else:
            x = torch.index_select(self.words.weight, 0, ids, out=into)
        if self.round_scale:
            x = torch.mul(x, torch.full((), self.scale, dtype=x.dtype, device=x.device), out=into)
        elif self.scale != 1.0:
            x = torch.mul(x, self.scale, out=into)
        if self.types is not None:
            x = _sum(x, self.types.weight[0] if types is None else self.types(types))
        if self.positions is not None:
            x = _sum(x, self.positions(places))
        if self.norm is not None and not self.norm_last:
            x = self.norm(x, into)
        x = F.dropout(x, self.dropout) if self.training else x
        if self.norm is not None and self.norm_last:
            x = self.norm(x, into)
        if self.projection is not None:
            x = linear(self.projection, x)  # (N, E) -> (N, C)
        return x


def _is_plain(words: nn.Embedding) -> bool:
    """Whether looking rows of its weight up is all that a table does."""
    watched = words._forward_hooks or words._forward_pre_hooks
    return type(words) is nn.Embedding and words.max_norm is None and not watched


def _sum(x: Tensor, y: Tensor) -> Tensor:
    """x + y, in place where nobody may have set eyes on x: hooks of peft make words a leaf."""
    return x.add_(y) if writes_over() else x + y


def check(
    ids: Tensor,
    layout: Layout,
    token_types: Tensor | None,
    words: nn.Embedding,
    types: nn.Embedding | None,
    limit: int | None,
) -> None:
    """Raise if ids or types do not fit the layout or the tables, or a document has too many positions."""
    if ids.shape != (layout.size,):
        raise bad("ids", f"of shape ({layout.size},), one for each row", tuple(ids.shape))
    longest = int(layout.sites.position.max(initial=-1)) + 1
    if limit is not None and longest > limit:
        ways = "Read it in windows (overflow='window'), cut it (overflow='truncate')"
        room = f"at most {limit} tokens long, as many as there are positions"
        raise bad("document", room, longest, f"{ways}, or lengthen the model.")
    if token_types is not None and types is None:
        raise bad("token_types", "None, as the model has none", tuple(token_types.shape))
    for name, column, table in (("ids", ids, words), ("token_types", token_types, types)):
        if column is None or table is None:
            continue
        if column.shape != ids.shape:
            raise bad(name, f"of shape {tuple(ids.shape)} like `ids`", tuple(column.shape))
        if column.numel() and not torch.compiler.is_compiling():
            least, most = (int(end) for end in column.aminmax())
            if least < 0 or most >= table.num_embeddings:
                wrong = least if least < 0 else most
                raise bad(name, f"from 0 to {table.num_embeddings - 1}", wrong, "Use the model's tokenizer.")
