"""ModernBERT (Warner et al. 2024): layers with a window, and every third one that sees the whole document."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from torch import nn

from longspan.errors import number, one_of
from longspan.families.alternating import AlternatingConfig
from longspan.families.rotary import RotaryEncoder
from longspan.nn.activations import activation
from longspan.nn.encoder import EncoderLayer, LayerConfig
from longspan.nn.feed_forward import GatedFeedForward
from longspan.nn.heads import MaskedLanguageHead, PredictionHead
from longspan.nn.norm import LayerNorm
from longspan.nn.rope import RopeParameters
from longspan.nn.rotary import RotaryAttention

POOLINGS = ("first", "mean")
FAR, NEAR = RopeParameters(rope_theta=160_000.0), RopeParameters(rope_theta=10_000.0)


@dataclass(frozen=True, kw_only=True)
class ModernBertConfig(AlternatingConfig):
    """Sizes of ModernBERT, and which of its layers see how far.

    >>> ModernBertConfig(layers=4).kinds
    ('full_attention', 'sliding_attention', 'sliding_attention', 'full_attention')
    """

    family: ClassVar[str] = "ModernBERT"
    norms_embeddings: ClassVar[bool] = True

    vocab_size: int = 50368
    layers: int = 22
    feed_forward: int = 1152
    "Size of the gate, and of what it is multiplied with."
    positions: int = 8192
    head_style: str = "own"
    norm_first: bool = True
    rope: RopeParameters = FAR
    local_rope: RopeParameters = NEAR
    norm_bias: bool = False
    attention_bias: bool = False
    feed_forward_bias: bool = False
    decoder_bias: bool = True
    embedding_dropout: float = 0.0
    classifier_pooling: str = "first"
    "What classifiers read of a document: its first token, or the mean of all."
    classifier_activation: str = "gelu"
    classifier_bias: bool = False
    "Of the dense layer inside the heads."

    def __post_init__(self) -> None:
        super().__post_init__()
        number("embedding_dropout", self.embedding_dropout, 0.0, 1.0, below=True)
        one_of("classifier_pooling", self.classifier_pooling, POOLINGS)
        activation(self.classifier_activation)

    @property
    def layer_config(self) -> LayerConfig:
        norm = partial(LayerNorm, bias=self.norm_bias)
        # Dropout follows the attention at the rate within it, and does not follow the feed-forward block.
        return super().layer_config._replace(
            norm=norm, dropout=self.attention_dropout, feed_forward_dropout=0.0
        )

    def own_head(self, architecture: str, outputs: int, words: nn.Embedding) -> nn.Module | None:
        act, bias = self.classifier_activation, self.classifier_bias
        norm = partial(LayerNorm, bias=self.norm_bias)
        if architecture == "ForMaskedLM":
            biases = {"bias": bias, "decoder_bias": self.decoder_bias}
            return MaskedLanguageHead(self.width, words, act=act, eps=self.norm_eps, norm=norm, **biases)
        of_document = architecture in ("ForSequenceClassification", "ForMultipleChoice")
        return PredictionHead(
            self.width,
            outputs,
            act=act,
            norm=partial(norm, eps=self.norm_eps),
            bias=bias,
            pooling=self.classifier_pooling if of_document else None,
        )

    def backbone(self) -> "ModernBert":
        return ModernBert(self)


class ModernBert(RotaryEncoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    Norms without bias precede the blocks, except the first attention, which follows the embeddings' norm. The
    feed-forward blocks are gated; no linear layer has a bias.

    >>> import torch
    >>> from longspan.layout import Layout
    >>> tiny = ModernBertConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> ModernBert(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    config: ModernBertConfig

    def layer(self, number: int) -> EncoderLayer:
        c, first, final = self.config, number == 0, number == self.config.layers - 1
        blocks = self.layer_attention(number), self.layer_feed_forward(number)
        return EncoderLayer(c.layer_config, *blocks, norm_attention=not first, final=final)

    def layer_attention(self, layer: int) -> RotaryAttention:
        c, bias = self.config, self.config.attention_bias
        return RotaryAttention(c.width, c.heads, bias=bias, out_bias=bias, dropout=c.attention_dropout)

    def layer_feed_forward(self, layer: int) -> GatedFeedForward:
        c, bias = self.config, self.config.feed_forward_bias
        rate = c.activation_dropout
        return GatedFeedForward(
            c.width, c.feed_forward, c.activation, bias=bias, down_bias=bias, dropout=rate
        )
