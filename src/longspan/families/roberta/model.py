"""RoBERTa: BERT with positions that begin after the padding token's number, other heads (Liu et al. 2019)."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.families.bert.model import BertConfig


@dataclass(frozen=True, kw_only=True)
class RobertaConfig(BertConfig):
    """Sizes of RoBERTa.

    >>> RobertaConfig().position_offset
    2
    """

    family: ClassVar[str] = "Roberta"

    vocab_size: int = 50265
    position_offset: int = 2
    token_types: int = 1
    norm_eps: float = 1e-5
    pad_id: int = 1
    head_style: str = "roberta"
