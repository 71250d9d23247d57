"""Jina BERT (Günther et al. 2023): BERT with ALiBi for positions and gated feed-forward blocks."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from longspan.engine.labels import ClippedDistance
from longspan.engine.terms import ScoreTable
from longspan.errors import bad
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Encoder, EncoderInputs
from longspan.families.config import EncoderConfig
from longspan.layout import Layout
from longspan.nn import alibi
from longspan.nn.attention import Biases
from longspan.nn.encoder import LayerConfig
from longspan.nn.feed_forward import GatedFeedForward
from longspan.patterns import Full


@dataclass(frozen=True, kw_only=True)
class JinaBertConfig(EncoderConfig):
    """Sizes of Jina BERT.

    >>> JinaBertConfig().positions
    8192
    """

    family: ClassVar[str] = "JinaBert"
    has_position_table: ClassVar[bool] = False

    vocab_size: int = 30528
    token_types: int = 2
    positions: int = 8192
    attention_dropout: float = 0.0
    norm_eps: float = 1e-12

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.buckets:
            raise bad("buckets", "0, as distances have scores already", self.buckets)

    @property
    def layer_config(self) -> LayerConfig:
        return super().layer_config._replace(feed_forward_dropout=0.0)  # which comes within the block

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        return ((AttentionSpec.within("all tokens", Full(), layout),),) * self.layers

    def backbone(self) -> "JinaBert":
        return JinaBert(self)


class JinaBert(Encoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    A score is q . k / sqrt(D) - slope * distance, in each head with its own slope: nothing is learned of
    positions, so documents may have any length.

    >>> import torch
    >>> tiny = JinaBertConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> JinaBert(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    config: JinaBertConfig

    def layer_feed_forward(self, layer: int) -> GatedFeedForward:
        c = self.config
        return GatedFeedForward(c.width, c.feed_forward, c.activation, down_bias=True, dropout=c.dropout)

    def inputs(self, layout: Layout) -> EncoderInputs:
        farthest = int(layout.sites.position.max(initial=0))
        table = alibi.scores(self.config.heads, farthest).to(self.word_embeddings.weight)
        layers = self.layer_inputs(layout, ClippedDistance(farthest))
        return EncoderInputs(self.placed(layout), table, tuple(layers))

    def biases(self, buckets: Tensor | None) -> Biases:
        return () if buckets is None else (ScoreTable(buckets),)
