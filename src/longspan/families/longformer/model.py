"""Longformer: a sliding window in every layer, and a few global tokens (Beltagy, Peters, Cohan 2020)."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from longspan.engine.plan import plan
from longspan.errors import bad
from longspan.layout import Layout
from longspan.models import body
from longspan.models.calls import Call, Calls
from longspan.models.config import EncoderConfig
from longspan.nn.attention import GlobalRows, LongformerAttention, SelfAttention
from longspan.patterns import FromLocal, Full, GlobalTokens, Pattern, ToGlobal, Window

PerLayer = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class LongformerConfig(EncoderConfig):
    """Sizes of RoBERTa and, for each layer, how far a token sees.

    >>> LongformerConfig(layers=2, radius=256).radius
    (256, 256)
    """

    position_offset: int = 2
    pad_id: int = 1
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
            spread = (value,) * self.layers if isinstance(value, int) else tuple(map(_frozen, value))
            if len(spread) != self.layers:
                raise bad(name, f"one number, or one for each of the {self.layers} layers", value)
            object.__setattr__(self, name, spread)
        for layer in range(self.layers):
            heads = self.pattern(layer).heads_declared
            if heads not in (None, self.heads):
                raise bad(
                    f"dilation[{layer}]", f"one number, or one for each of the {self.heads} heads", heads
                )

    def pattern(self, layer: int) -> Pattern:
        """What tokens of a layer see: the window and the global tokens, which see everything."""
        assert isinstance(self.radius, tuple)
        assert isinstance(self.dilation, tuple)
        window = Window(self.radius[layer], dilation=self.dilation[layer])
        if self.share_global_projections:
            return window | GlobalTokens()
        return (window | ToGlobal()) & FromLocal()  # global rows are computed apart

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """One for each layer."""
        return tuple(map(self.pattern, range(self.layers)))

    def calls(self, layout: Layout) -> Calls:
        """What each layer attends to, for pictures and reports: the window, and the global rows apart."""
        apart: tuple[Call, ...] = ()
        if layout.marked_rows.size and not self.share_global_projections:
            rows = layout.take(layout.marked_rows)
            words = "Marked tokens see the whole document, by projections of their own."
            apart = (Call(name="global rows", pattern=Full(), queries=rows, keys=layout, words=words),)
        return tuple(
            (Call(name="window", pattern=one, queries=layout, keys=layout), *apart) for one in self.patterns
        )


class Longformer(nn.Module):
    """ids (N,) of the documents of a layout to hidden states (N, C); marked rows are the global tokens.

    >>> import torch
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3)
    >>> Longformer(tiny).eval()(torch.arange(9), Layout.packed([5, 4], marked=[[0], [0]])).shape
    torch.Size([9, 8])
    """

    def __init__(self, config: LongformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = body.embeddings(config)
        kind = SelfAttention if config.share_global_projections else LongformerAttention
        self.layers = body.layers(config, kind)
        self.relative_bias = body.relative_bias(config)
        self.checkpointing = False
        body.initialise(self, config.init_std)

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        config, x = self.config, self.embeddings(ids, layout, types)
        assert isinstance(config.radius, tuple)
        labels, biases = body.distances(self.relative_bias, max(config.radius))
        plans = [plan(pattern, layout, heads=config.heads, labels=labels) for pattern in config.patterns]
        apart: tuple[Any, ...] = ()
        if not config.share_global_projections:
            apart = (GlobalRows.of(layout, config.heads, config.width, labels),)
        seen = [(pairs, *apart, biases) for pairs in plans]
        return body.run(self.layers, x, seen, checkpointing=self.checkpointing)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, (list, tuple)) else value
