"""Jina embeddings v3 (Sturua et al. 2024): XLM-R with rotary positions in the place of its table."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.families.rotary import RotaryConfig, RotaryEncoder
from longspan.nn.rope import RopeParameters
from longspan.nn.rotary import RotaryAttention

USUAL = RopeParameters(rope_theta=20_000.0)


@dataclass(frozen=True, kw_only=True)
class JinaEmbeddingsV3Config(RotaryConfig):
    """Sizes of Jina embeddings v3.

    >>> JinaEmbeddingsV3Config().layers
    24
    """

    family: ClassVar[str] = "JinaEmbeddingsV3"

    vocab_size: int = 250002
    width: int = 1024
    layers: int = 24
    heads: int = 16
    feed_forward: int = 4096
    token_types: int = 1
    positions: int = 8194
    dropout: float = 0.1
    attention_dropout: float = 0.1
    rope: RopeParameters = USUAL
    head_style: str = "roberta"
    pad_id: int = 1

    def backbone(self) -> "JinaEmbeddingsV3":
        return JinaEmbeddingsV3(self)


class JinaEmbeddingsV3(RotaryEncoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    >>> import torch
    >>> from longspan.layout import Layout
    >>> tiny = JinaEmbeddingsV3Config(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> JinaEmbeddingsV3(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    config: JinaEmbeddingsV3Config

    def layer_attention(self, layer: int) -> RotaryAttention:
        c = self.config
        return RotaryAttention(c.width, c.heads, bias=True, out_bias=True, dropout=c.attention_dropout)
