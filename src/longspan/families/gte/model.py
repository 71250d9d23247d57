"""GTE (Zhang et al. 2024): BERT with rotary positions, gated feed-forward blocks and no position table."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.families.rotary import RotaryConfig, RotaryEncoder
from longspan.nn.feed_forward import GatedFeedForward
from longspan.nn.rope import RopeParameters
from longspan.nn.rotary import RotaryAttention

FAR = RopeParameters(rope_theta=160_000.0)


@dataclass(frozen=True, kw_only=True)
class GteConfig(RotaryConfig):
    """Sizes of GTE.

    >>> GteConfig().rope.rope_theta
    160000.0
    """

    family: ClassVar[str] = "Gte"

    vocab_size: int = 250048
    token_types: int = 1
    positions: int = 8192
    dropout: float = 0.1
    norm_eps: float = 1e-12
    rope: RopeParameters = FAR
    pad_id: int = 1

    def activation_in_head(self, architecture: str) -> str:
        usual = self.head_activation == "usual" and architecture == "ForMaskedLM"
        return "gelu" if usual else super().activation_in_head(architecture)

    def backbone(self) -> "Gte":
        return Gte(self)


class Gte(RotaryEncoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    Norms follow the blocks. All linear layers have a bias except the gates and what they are multiplied with;
    of these the gate comes last, and dropout follows their product.

    >>> import torch
    >>> from longspan.layout import Layout
    >>> tiny = GteConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> Gte(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    config: GteConfig

    def layer_attention(self, layer: int) -> RotaryAttention:
        c = self.config
        return RotaryAttention(c.width, c.heads, bias=True, out_bias=True, dropout=c.attention_dropout)

    def layer_feed_forward(self, layer: int) -> GatedFeedForward:
        c, sizes = self.config, (self.config.width, self.config.feed_forward)
        return GatedFeedForward(*sizes, c.activation, gate_first=False, down_bias=True, dropout=c.dropout)
