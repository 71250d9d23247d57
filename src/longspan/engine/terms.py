"""Terms that are added to a score by the label of its pair; the labels themselves belong to the plan."""

from dataclasses import dataclass

from torch import Tensor

from longspan.errors import bad


@dataclass(frozen=True, eq=False)
class RelativeKeys:
    """Adds scale * (q + content) . relative[label] to a pair's score (Shaw et al.; Transformer-XL, §3.3).

    >>> import torch
    >>> RelativeKeys(torch.zeros(9, 2, 4), content=torch.zeros(2, 4)).relative.shape
    torch.Size([9, 2, 4])
    """

    relative: Tensor
    "(L, H, D): one key for each label and head."
    content: Tensor | None = None
    "(H, D): added to every query before its product with the relative keys."

    def __post_init__(self) -> None:
        _require("relative", self.relative, "(L, H, D)", 3)
        if self.content is not None:
            _require("content", self.content, "(H, D)", 2)


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """Adds table[label] to a pair's score, unscaled and uncapped: ALiBi, T5's buckets, Adaptive Span.

    >>> import torch
    >>> ScoreTable(torch.zeros(9, 2)).table.shape
    torch.Size([9, 2])
    """

    table: Tensor
    "(L, H): one number for each label and head."

    def __post_init__(self) -> None:
        _require("table", self.table, "(L, H)", 2)


Term = RelativeKeys | ScoreTable


def _require(name: str, value: object, shape: str, rank: int) -> None:
    if not isinstance(value, Tensor):
        raise bad(name, f"a tensor of shape {shape}", type(value).__name__)
    if value.dim() != rank:
        raise bad(name, f"of shape {shape}", tuple(value.shape))
