"""Nomic BERT (Nussbaum et al. 2024): BERT with rotary positions and gated feed-forward blocks."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import whole
from longspan.families.rotary import RotaryConfig, RotaryEncoder
from longspan.nn.feed_forward import GatedFeedForward
from longspan.nn.rope import RopeParameters

SLOW = RopeParameters(rope_theta=1_000.0)


@dataclass(frozen=True, kw_only=True)
class NomicBertConfig(RotaryConfig):
    """Sizes of Nomic BERT, and how many tokens it was trained on.

    >>> NomicBertConfig().positions, NomicBertConfig().trained_positions
    (8192, 2048)
    """

    family: ClassVar[str] = "NomicBert"

    vocab_size: int = 30528
    token_types: int = 2
    positions: int = 8192
    trained_positions: int = 2048
    "Tokens of the longest document of pretraining; scaled angles count from here."
    activation: str = "silu"
    norm_eps: float = 1e-12
    rope: RopeParameters = SLOW

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("trained_positions", self.trained_positions, 1)

    def backbone(self) -> "NomicBert":
        return NomicBert(self)


class NomicBert(RotaryEncoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    Norms follow the blocks, as in BERT; no linear layer has a bias.

    >>> import torch
    >>> from longspan.layout import Layout
    >>> tiny = NomicBertConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> NomicBert(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    config: NomicBertConfig

    def layer_feed_forward(self, layer: int) -> GatedFeedForward:
        c = self.config
        return GatedFeedForward(c.width, c.feed_forward, c.activation, dropout=c.activation_dropout)
