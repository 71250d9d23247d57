"""EmbeddingGemma (Vera et al. 2025): Gemma 3, whose tokens see those after them, too."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from longspan.errors import number
from longspan.families.alternating import AlternatingConfig
from longspan.families.grouped import GroupedConfig, GroupedEncoder
from longspan.nn.encoder import LayerConfig
from longspan.nn.feed_forward import GatedFeedForward
from longspan.nn.norm import RMSNorm
from longspan.nn.rope import RopeParameters
from longspan.nn.rotary import RotaryAttention
from longspan.nn.sandwich import SandwichLayer

FAR, NEAR = RopeParameters(rope_theta=1_000_000.0), RopeParameters(rope_theta=10_000.0)


@dataclass(frozen=True, kw_only=True)
class Gemma3Config(AlternatingConfig, GroupedConfig):
    """Sizes of EmbeddingGemma, and which of its layers see how far.

    >>> Gemma3Config(layers=7).kinds[4:]
    ('sliding_attention', 'full_attention', 'sliding_attention')
    """

    family: ClassVar[str] = "EmbeddingGemma"
    rounds_scale: ClassVar[bool] = True
    every: ClassVar[int] = 6
    full_last: ClassVar[bool] = True

    vocab_size: int = 262144
    layers: int = 24
    heads: int = 3
    feed_forward: int = 1152
    "Size of the gate, and of what it is multiplied with."
    positions: int = 2048
    activation: str = "gelu_pytorch_tanh"
    head_style: str = "own"
    norm_first: bool = True
    rescale_embeddings: bool = True
    norm_eps: float = 1e-6
    kv_heads: int | None = 1
    head_dim: int | None = 256
    radius: int = 256
    rope: RopeParameters = FAR
    local_rope: RopeParameters = NEAR
    query_scalar: float = 256.0
    "Scores are divided by its square root."
    attention_bias: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        number("query_scalar", self.query_scalar, 1e-6, 1e6)

    @property
    def layer_config(self) -> LayerConfig:
        return super().layer_config._replace(norm=partial(RMSNorm, shift=1.0))

    def backbone(self) -> "Gemma3":
        return Gemma3(self)


class Gemma3(GroupedEncoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    Embeddings are multiplied by the root of their size; RMS norms stand before and behind each block, and one
    of each head before queries and keys are turned.

    >>> import torch
    >>> from longspan.layout import Layout
    >>> tiny = Gemma3Config(vocab_size=9, width=8, layers=2, heads=2, head_dim=6, feed_forward=16)
    >>> Gemma3(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    config: Gemma3Config

    def layer(self, number: int) -> SandwichLayer:
        c, blocks = self.config, (self.layer_attention(number), self.layer_feed_forward(number))
        return SandwichLayer(c.layer_config, *blocks, final=number == c.layers - 1)

    def layer_attention(self, layer: int) -> RotaryAttention:
        c = self.config
        norm = partial(RMSNorm, eps=c.norm_eps, shift=1.0)
        return self.grouped_attention(c.attention_bias, scale=c.query_scalar**-0.5, norm=norm)

    def layer_feed_forward(self, layer: int) -> GatedFeedForward:
        c = self.config
        return GatedFeedForward(c.width, c.feed_forward, c.activation, dropout=c.activation_dropout)
