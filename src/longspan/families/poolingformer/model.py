"""Poolingformer: Longformer, some of whose layers look farther at pooled tokens (Zhang et al. 2021).

No code of the paper was ever published, so this file is a definition as well. (p) is the paper's, as far as
it can be read; (o) is ours where the paper is silent or leaves a choice. In a two-level layer with the input
X (N, C):

1. Level 1 (p) is a Longformer's attention: Y is the context of every row, before the output projection.
   Global rows have their own projections there and see everything; everybody sees them.
2. Q', K', V' are projections of Y (p), each with weights and a bias of its own; of X with `mix` (p, an
   ablation); by level 1's weights with `share_weights` (p, an ablation), by those of its local rows (o).
   Both together are `lite` (o): K' and V' are the keys and values of level 1, nothing is projected again.
3. K' and V' are pooled with a `kernel` of tokens that moves by a `stride` (p). The grid is fixed (o): slot j
   of a document covers the `kernel` tokens from j * stride - (kernel - stride) // 2 on, as far as they lie
   in the document; n tokens have ceil(n / stride) slots. Padding takes no part, and a slot of nothing but
   padding is not seen (o).
   "mean" and "max" are what they say (p). "ldconv" is the sum of delta_i v_i over the slot's tokens, where
   delta = softmax(W v_centre) (p). The softmax runs over the tokens that exist (o); the centre is the one of
   them that is nearest to the middle, the earlier of two (o); W has no bias (o), and one delta serves all
   columns (o; `delta_by_head`: each head has a W for its own part of v). Keys and values have a W each (o;
   `delta_shared`: the same one). `delta_from` "first" or "mean" makes delta of another token or of all (o).
4. Level 2 (p): token i attends, by its row of Q', to the slots whose centre lies within `wide_radius` tokens
   on each side of i (o: one reading of "window"; a centre beyond the document's end counts as its last
   token). Scores are scaled as in level 1 (o). This gives Z. A global row is a row like any other here (o):
   it has seen everything in level 1. Biases by distance, where a model has them, are added by the distance
   to the centre (o).
5. The layer's attention is out(Y + Z) (p) with one output projection (o); out(Z) without `residual` (o).
   Probabilities of both levels are dropped in training, each level by itself (o).

About a quarter of the layers should have two levels (p). Which ones is ours by default: the quarter before
the last sixth, layers 15 to 20 of 24 and 8 to 10 of 12, counted from 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor

from longspan.engine.call import AnyPlan, attention
from longspan.engine.labels import ClippedDistance
from longspan.errors import bad, one_of, whole
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Encoder
from longspan.families.config import LARGEST
from longspan.families.longformer.attention import GlobalRows, LongformerAttention
from longspan.families.longformer.model import LongformerConfig
from longspan.layout import Layout
from longspan.nn.attention import Biases, fresh_dropout
from longspan.nn.linear import linear
from longspan.nn.pooled_attention import PooledAttention, PooledKeys
from longspan.nn.pooling import SOURCES, DynamicPooling, MaxPooling, MeanPooling, Pooling, Slots
from longspan.nn.rows import Scratch, projected
from longspan.patterns import Window

POOLINGS = ("ldconv", "mean", "max")
WIDEST = 4096
"""Tokens of a slot."""


@dataclass(frozen=True, kw_only=True)
class PoolingformerConfig(LongformerConfig):
    """Sizes of a Longformer, and what the second level sees; this module's docstring defines every field.

    >>> PoolingformerConfig(layers=24).two_level
    (14, 15, 16, 17, 18, 19)
    """

    family: ClassVar[str] = "Poolingformer"
    extends_with_pooling: ClassVar[bool] = False

    radius: int | tuple[int, ...] = 128
    "Tokens that level 1 sees on each side: one number, or one for each layer."
    two_level: tuple[int, ...] | None = None
    "The layers with two levels, counted from 0; None: a quarter of them."
    wide_radius: int = 512
    "How far level 2 sees, on each side, in tokens."
    kernel: int = 5
    "Tokens of a slot."
    stride: int = 4
    "Tokens from slot to slot."
    pooling: str = "ldconv"
    '"ldconv", "mean" or "max".'
    delta_from: str = "centre"
    'What ldconv makes its weights from: "centre", "first" or "mean".'
    delta_by_head: bool = False
    "Each head makes weights for itself."
    delta_shared: bool = False
    "The same map makes the weights of keys and values."
    mix: bool = False
    "Level 2 reads the layer's input instead of level 1's output."
    share_weights: bool = False
    "Level 2 uses the projections of level 1."
    residual: bool = True
    "Level 1's output is added to level 2's."

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share_global_projections:
            raise bad("share_global_projections", "False in a Poolingformer", True)
        end = self.layers - self.layers // 6
        quarter = tuple(range(end - max(1, self.layers // 4), end))
        chosen = quarter if self.two_level is None else self.two_level
        if not isinstance(chosen, (list, tuple)):
            raise bad("two_level", "a list of layers, or None for a quarter of them", chosen)
        for layer in chosen:
            whole("two_level", layer, 0, "Layers are counted from 0.", most=self.layers - 1)
        if len(set(chosen)) < len(chosen):
            raise bad("two_level", "a list in which no layer stands twice", self.two_level)
        object.__setattr__(self, "two_level", tuple(sorted(chosen)))
        whole("wide_radius", self.wide_radius, 1, most=LARGEST)
        whole("stride", self.stride, 1, most=WIDEST)
        whole("kernel", self.kernel, self.stride, "Every token must fall into a slot.", most=WIDEST)
        one_of("pooling", self.pooling, POOLINGS)
        one_of("delta_from", self.delta_from, SOURCES)

    @property
    def pooled_layers(self) -> tuple[int, ...]:
        """The layers with two levels."""
        assert self.two_level is not None
        return self.two_level

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        grid = self.kernel, self.stride
        among = AttentionSpec.within("pooled", Window(self.wide_radius), layout)
        pooled = replace(among, keys=layout.pool(*grid), pooled=grid)
        near = super().attention(layout)
        both = [(pooled, *specs) if self.mix else (*specs, pooled) for specs in near]  # as they are computed
        return tuple(both[i] if i in self.pooled_layers else specs for i, specs in enumerate(near))

    def backbone(self) -> "Poolingformer":
        return Poolingformer(self)


def lite(config: PoolingformerConfig) -> PoolingformerConfig:
    """The variant whose second level pools the keys and values of the first: no projections are added.

    >>> lite(PoolingformerConfig()).mix
    True
    """
    return replace(config, mix=True, share_weights=True)


class PoolingformerAttention(LongformerAttention):
    """Longformer's attention, then attention from every row to pooled rows farther away."""

    def __init__(self, width: int, heads: int, second: PooledAttention, *, dropout: float = 0.0) -> None:
        super().__init__(width, heads, dropout=dropout)
        self.second = second
        if second.own:  # its keys and values are projected for few rows only
            self.int8_layers = (*self.int8_layers, "second.query")

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        pairs: AnyPlan,
        global_rows: GlobalRows,
        pooled: PooledKeys,
        biases: Biases = (),
        *,
        scratch: Scratch | None = None,
    ) -> Tensor:
        room = projected(scratch)
        qkv = linear(self.qkv, x, room)
        q, k, v = qkv.view(x.shape[0], 3, self.heads, -1).unbind(1)  # (N, 3C) -> (N, H, D)
        near = attention(q, k, v, pairs, terms=biases, dropout=fresh_dropout(self)).flatten(1)
        near = self.with_global_rows(near, x, global_rows, biases)
        dropout = fresh_dropout(self)
        return self.second(x, near, qkv, self.qkv, pooled, biases, dropout=dropout, scratch=room)  # type: ignore[no-any-return]


class Poolingformer(Encoder):
    """ids (N,) of the documents of a layout to hidden states (N, C); marked rows are the global tokens.

    >>> import torch
    >>> tiny = PoolingformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3)
    >>> Poolingformer(tiny).eval()(torch.arange(9), Layout.packed([5, 4], marked=[[0], [0]])).shape
    torch.Size([9, 8])
    """

    config: PoolingformerConfig

    def layer_attention(self, layer: int) -> LongformerAttention:
        config = self.config
        sizes, dropout = (config.width, config.heads), config.attention_dropout
        if layer not in config.pooled_layers:
            return LongformerAttention(*sizes, dropout=dropout)
        second = PooledAttention(
            *sizes, _pooling(config), own=not config.share_weights, mix=config.mix, residual=config.residual
        )
        return PoolingformerAttention(*sizes, second, dropout=dropout)

    def layer_inputs(self, layout: Layout, labels: ClippedDistance | None) -> Iterable[tuple[Any, ...]]:
        config = self.config
        named = [{spec.name: spec for spec in layer} for layer in config.attention(layout)]
        apart = [spec for name, spec in named[0].items() if name == "global rows"]
        rows = GlobalRows.of(apart, config.heads, config.width, labels)
        slots = Slots.of(layout, config.kernel, config.stride)
        inputs = []
        for layer in named:
            far = [spec.plan(config.heads, labels) for name, spec in layer.items() if name == "pooled"]
            pooled = [PooledKeys(slots, pairs) for pairs in far]
            inputs.append((layer["window"].plan(config.heads, labels), rows, *pooled))
        return inputs


def _pooling(config: PoolingformerConfig) -> Pooling:
    if config.pooling != "ldconv":
        return MeanPooling() if config.pooling == "mean" else MaxPooling()
    return DynamicPooling(
        config.width,
        kernel=config.kernel,
        source=config.delta_from,
        heads=config.heads if config.delta_by_head else 1,
        shared=config.delta_shared,
    )
