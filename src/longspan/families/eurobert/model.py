"""EuroBERT (Boizard et al. 2025): the layers of Llama, whose tokens all see each other."""

from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from longspan.errors import one_of
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.grouped import GroupedConfig, GroupedEncoder
from longspan.layout import Layout
from longspan.nn.encoder import LayerConfig
from longspan.nn.feed_forward import GatedFeedForward
from longspan.nn.heads import PredictionHead, WordHead
from longspan.nn.norm import RMSNorm
from longspan.nn.rope import RopeParameters
from longspan.nn.rotary import RotaryAttention
from longspan.patterns import Full

POOLINGS = ("first", "mean", "late")
FAR = RopeParameters(rope_theta=250_000.0)


@dataclass(frozen=True, kw_only=True)
class EuroBertConfig(GroupedConfig):
    """Sizes of EuroBERT.

    >>> EuroBertConfig().head_size
    64
    """

    family: ClassVar[str] = "EuroBERT"
    separate_head_dropout: ClassVar[bool] = False
    full_attention: ClassVar[bool] = True

    vocab_size: int = 128256
    positions: int = 8192
    activation: str = "silu"
    head_style: str = "own"
    norm_first: bool = True
    rope: RopeParameters = FAR
    attention_bias: bool = False
    feed_forward_bias: bool = False
    "Of the decoder of words, too."
    classifier_pooling: str = "late"
    """What the classifier reads of a document: its first token, the mean of all; or "late", where the mean is
    that of each token's scores."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("classifier_pooling", self.classifier_pooling, POOLINGS)

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        return ((AttentionSpec.within("all tokens", Full(), layout),),) * self.layers

    @property
    def layer_config(self) -> LayerConfig:
        return super().layer_config._replace(norm=RMSNorm)

    def own_head(self, architecture: str, outputs: int, words: nn.Embedding) -> nn.Module | None:
        if architecture == "ForMaskedLM":
            return WordHead(self.width, outputs, bias=self.feed_forward_bias)
        if architecture == "ForSequenceClassification":
            return PredictionHead(self.width, outputs, act="gelu", norm=None, pooling=self.classifier_pooling)
        return None

    def backbone(self) -> "EuroBert":
        return EuroBert(self)


class EuroBert(GroupedEncoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    RMS norms precede the blocks, and one follows the last; the feed-forward blocks are gated.

    >>> import torch
    >>> tiny = EuroBertConfig(vocab_size=9, width=8, layers=2, heads=2, kv_heads=1, feed_forward=16)
    >>> EuroBert(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    config: EuroBertConfig

    def layer_attention(self, layer: int) -> RotaryAttention:
        return self.grouped_attention(self.config.attention_bias)

    def layer_feed_forward(self, layer: int) -> GatedFeedForward:
        c, bias = self.config, self.config.feed_forward_bias
        rate = c.activation_dropout
        return GatedFeedForward(
            c.width, c.feed_forward, c.activation, bias=bias, down_bias=bias, dropout=rate
        )
