"""Token, position and type embeddings of packed documents."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.errors import bad
from longspan.layout import Layout


class Embeddings(nn.Module):
    """ids (N,) to the first hidden states (N, C): word + position + type, norm and dropout.

    Position p of a document reads row p + `offset` of the table (RoBERTa keeps its first rows for padding).
    """

    def __init__(
        self,
        *,
        vocab: int,
        width: int,
        positions: int,
        types: int,
        offset: int = 0,
        eps: float,
        dropout: float,
        scale: float = 1.0,
        norm_last: bool = False,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.positions = nn.Embedding(positions + offset, width)
        self.types = nn.Embedding(types, width)
        self.norm = nn.LayerNorm(width, eps)
        self.offset, self.limit, self.scale = offset, positions, scale
        self.dropout, self.norm_last = dropout, norm_last

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        self._check(ids, layout, types)
        places = torch.from_numpy(layout.sites.position.astype("int64")).to(ids.device) + self.offset
        x = self.words(ids)  # (N,) -> (N, C)
        if self.scale != 1.0:
            x = x * self.scale
        kinds = self.types.weight[0] if types is None else self.types(types)
        x = x.add_(kinds).add_(self.positions(places))
        if self.norm_last:
            return self.norm(F.dropout(x, self.dropout, self.training))  # type: ignore[no-any-return]
        return F.dropout(self.norm(x), self.dropout, self.training)

    def _check(self, ids: Tensor, layout: Layout, types: Tensor | None) -> None:
        if ids.shape != (layout.size,):
            raise bad("ids", f"of shape ({layout.size},), one for each row", tuple(ids.shape))
        longest = int(layout.sites.position.max(initial=-1)) + 1
        if longest > self.limit:
            repair = (
                "Read it in windows (overflow='window'), cut it (overflow='truncate'), or lengthen the model."
            )
            raise bad(
                "document",
                f"at most {self.limit} tokens long, as many as there are positions",
                longest,
                repair,
            )
        for name, given, table in (("ids", ids, self.words), ("types", types, self.types)):
            if given is None:
                continue
            if given.shape != ids.shape:
                raise bad(name, f"of shape {tuple(ids.shape)} like `ids`", tuple(given.shape))
            if given.numel() and not torch.compiler.is_compiling():
                least, most = (int(end) for end in given.aminmax())
                if least < 0 or most >= table.num_embeddings:
                    found = least if least < 0 else most
                    raise bad(
                        name, f"from 0 to {table.num_embeddings - 1}", found, "Use the model's tokenizer."
                    )
