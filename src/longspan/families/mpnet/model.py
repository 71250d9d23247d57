"""MPNet: BERT without segments, whose scores depend on the distance of two tokens (Song et al. 2020)."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import bad
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Encoder
from longspan.families.config import EncoderConfig
from longspan.layout import Layout
from longspan.patterns import Full


@dataclass(frozen=True, kw_only=True)
class MPNetConfig(EncoderConfig):
    """Sizes of BERT, positions that begin after the padding token's number, and buckets of distances.

    >>> MPNetConfig().token_types, MPNetConfig().buckets
    (0, 32)
    """

    family: ClassVar[str] = "MPNet"
    separate_head_dropout: ClassVar[bool] = False
    full_attention: ClassVar[bool] = True

    vocab_size: int = 30527
    positions: int = 510
    position_offset: int = 2
    token_types: int = 0
    norm_eps: float = 1e-12
    pad_id: int = 1
    buckets: int = 32
    head_style: str = "roberta"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.buckets:
            raise bad("buckets", "at least 4", self.buckets, "Use BertConfig for a model without biases.")

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        return ((AttentionSpec.within("all tokens", Full(), layout),),) * self.layers

    def backbone(self) -> "MPNet":
        return MPNet(self)


class MPNet(Encoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    A score is q . k / sqrt(D) plus a bias by the distance from query to key, one for each head, shared by all
    layers. The permuted order of MPNet's pretraining is not needed to read with it.

    >>> import torch
    >>> tiny = MPNetConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> MPNet(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """
