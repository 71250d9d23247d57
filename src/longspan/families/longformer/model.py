"""Longformer: a sliding window in every layer, and a few global tokens (Beltagy, Peters, Cohan 2020)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import nn

from longspan.engine.labels import ClippedDistance
from longspan.errors import bad
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Encoder
from longspan.families.config import EncoderConfig, GlobalTokenUse
from longspan.families.longformer.attention import GlobalRows, LongformerAttention
from longspan.layout import Layout
from longspan.nn.attention import SelfAttention
from longspan.patterns import FromLocal, Full, GlobalTokens, Pattern, ToGlobal, Window

PerLayer = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class LongformerConfig(EncoderConfig):
    """Sizes of RoBERTa and, for each layer, how far a token sees.

    >>> LongformerConfig(layers=2, radius=256).radius
    (256, 256)
    """

    family: ClassVar[str] = "Longformer"
    decoder_offset: ClassVar[int | None] = 0
    extends_with_pooling: ClassVar[bool] = True
    separate_head_dropout: ClassVar[bool] = False
    global_tokens: ClassVar[GlobalTokenUse] = "by task"

    position_offset: int = 2
    pad_id: int = 1
    head_style: str = "roberta"
    radius: int | tuple[int, ...] = 256
    "Tokens seen on each side: one number, or one for each layer (section 3.1)."
    dilation: int | PerLayer = 1
    "Gap between seen tokens: one number, or for each layer a number or one for each head (section 3.1)."
    share_global_projections: bool = False
    "Global tokens use the projections of the local ones: the ablation of table 10."

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("radius", "dilation"):
            value = getattr(self, name)
            each = (value,) * self.layers if isinstance(value, int) else value
            spread = tuple(tuple(one) if isinstance(one, (list, tuple)) else one for one in each)
            if len(spread) != self.layers:
                raise bad(name, f"one number, or one for each of the {self.layers} layers", value)
            object.__setattr__(self, name, spread)
        for layer in range(self.layers):
            heads = self.pattern(layer).heads_declared
            if heads not in (None, self.heads):
                requirement = f"one number, or one for each of the {self.heads} heads"
                raise bad(f"dilation[{layer}]", requirement, heads)

    @property
    def radii(self) -> tuple[int, ...]:
        """The radius of each layer."""
        assert isinstance(self.radius, tuple)
        return self.radius

    def pattern(self, layer: int) -> Pattern:
        """What tokens of a layer see: the window and the global tokens, which see everything."""
        assert isinstance(self.dilation, tuple)
        window = Window(self.radii[layer], dilation=self.dilation[layer])
        if self.share_global_projections:
            return window | GlobalTokens()
        return (window | ToGlobal()) & FromLocal()  # global rows are computed apart

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        apart: tuple[AttentionSpec, ...] = ()
        if layout.marked_rows.size and not self.share_global_projections:
            rows = layout.take(layout.marked_rows)
            summary = "Marked tokens see the whole document, by projections of their own."
            spec = AttentionSpec.within("global rows", Full(), layout, summary)
            apart = (replace(spec, queries=rows),)
        patterns = map(self.pattern, range(self.layers))
        return tuple((AttentionSpec.within("window", pattern, layout), *apart) for pattern in patterns)

    @property
    def exact_up_to(self) -> int:
        return min(self.radii) + 1

    @property
    def reach(self) -> int:
        return max(self.radii)

    def usual_marks(self, length: int) -> Iterable[int]:
        return (0,)

    def backbone(self) -> Encoder:
        return Longformer(self)


class Longformer(Encoder):
    """ids (N,) of the documents of a layout to hidden states (N, C); marked rows are the global tokens.

    >>> import torch
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3)
    >>> Longformer(tiny).eval()(torch.arange(9), Layout.packed([5, 4], marked=[[0], [0]])).shape
    torch.Size([9, 8])
    """

    config: LongformerConfig

    def layer_attention(self, layer: int) -> nn.Module:
        config = self.config
        kind = SelfAttention if config.share_global_projections else LongformerAttention
        return kind(config.width, config.heads, dropout=config.attention_dropout)

    def layer_inputs(self, layout: Layout, labels: ClippedDistance | None) -> Iterable[tuple[Any, ...]]:
        config, specs = self.config, self.config.attention(layout)
        shared: tuple[Any, ...] = ()
        if not config.share_global_projections:
            shared = (GlobalRows.of(specs[0][1:], config.heads, config.width, labels),)
        return [(window.plan(config.heads, labels), *shared) for window, *_ in specs]
