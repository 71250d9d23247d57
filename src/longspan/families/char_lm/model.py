"""A language model of bytes: causal windows that grow with the layer (Longformer, section 4)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.engine.labels import ClippedDistance, UnsignedDistance
from longspan.errors import FARTHEST, bad, number, one_of, whole
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Encoder, EncoderInputs, run
from longspan.families.char_lm.attention import RelativeAttention, ScoreBiases, rotations, sinusoids
from longspan.families.config import LARGEST, EncoderConfig
from longspan.families.model_plan import ModelPlan
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.encoder import EncoderLayer
from longspan.nn.heads import WordHead
from longspan.nn.norm import LayerNorm
from longspan.nn.rope import RopeParameters
from longspan.nn.rotary import RotaryAttention
from longspan.patterns import Causal, Pattern, Window

BYTES = 256
POSITION_TYPES = ("rotary", "relative")
PerLayer = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class CharLMConfig(EncoderConfig):
    """Sizes of a language model of bytes and, for each layer, how far back it looks.

    >>> CharLMConfig(layers=2, radius=(32, 64), dilation=(1, (1,) * 6 + (2, 2))).reaches
    (32, 128)
    """

    family: ClassVar[str] = "CharLM"
    has_position_table: ClassVar[bool] = False
    longest: ClassVar[int] = LARGEST
    causal: ClassVar[bool] = True

    vocab_size: int = BYTES
    width: int = 512
    heads: int = 8
    feed_forward: int = 2048
    token_types: int = 0
    head_style: str = "own"
    norm_first: bool = True
    rescale_embeddings: bool = True
    dropout: float = 0.0
    attention_dropout: float = 0.0
    radius: int | tuple[int, ...] = 512
    "How many characters a layer looks back: one number, or one for each layer."
    dilation: int | PerLayer = 1
    "Gap between those characters: one number, or for each layer a number or one for each head."
    position_type: str = "rotary"
    '"rotary", or "relative": sinusoids of distances, with biases (Transformer-XL).'
    rope_theta: float = 10_000.0
    "The base of rotary angles."
    closing_norm: bool = True
    "Whether a norm follows the last layer; Transformer-XL has none."
    alphabet: tuple[int, ...] = ()
    "The bytes that the model knows, ascending; empty: the first `vocab_size`, which may be all 256."

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("vocab_size", self.vocab_size, 1, most=BYTES)
        one_of("position_type", self.position_type, POSITION_TYPES)
        number("rope_theta", self.rope_theta, 1.0, 1e12)
        if self.head_size % 2:
            raise bad("width", "an even number for each head", self.width, f"There are {self.heads} heads.")
        for name in ("radius", "dilation"):
            object.__setattr__(self, name, _spread(name, getattr(self, name), self.layers))
        for layer in range(self.layers):
            declared = self.pattern(layer).heads_declared
            if declared not in (None, self.heads):
                requirement = f"one number, or one for each of the {self.heads} heads"
                raise bad(f"dilation[{layer}]", requirement, declared)
        known = [whole("alphabet", byte, 0, most=BYTES - 1) for byte in _listed("alphabet", self.alphabet)]
        if known and (known != sorted({*known}) or len(known) != self.vocab_size):
            raise bad("alphabet", f"{self.vocab_size} different bytes, ascending", len(known))

    @property
    def radii(self) -> tuple[int, ...]:
        """How many characters each layer looks back, apart by its dilation."""
        return cast(tuple[int, ...], self.radius)

    @property
    def dilations(self) -> tuple[tuple[int, ...], ...]:
        """The gap of each layer's heads."""
        each = cast(PerLayer, self.dilation)
        return tuple(one if isinstance(one, tuple) else (one,) * self.heads for one in each)

    @property
    def reaches(self) -> tuple[int, ...]:
        """The distance to the farthest character that each layer sees."""
        pairs = zip(self.radii, self.dilations, strict=True)
        return tuple(min(radius * max(gaps), FARTHEST) for radius, gaps in pairs)

    @property
    def receptive_field(self) -> int:
        """How many characters before it a prediction can depend on, through all layers."""
        return sum(self.reaches)

    def pattern(self, layer: int) -> Pattern:
        """What the characters of a layer see: themselves, and some before them."""
        dilation = cast(PerLayer, self.dilation)[layer]
        return Window(self.radii[layer], dilation=dilation) & Causal()

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        return self.attention_between(layout, layout)

    def attention_between(self, queries: Layout, keys: Layout) -> LayerSpecs:
        """The same where rows that came before are keys, too."""
        patterns = map(self.pattern, range(self.layers))
        return tuple(
            (AttentionSpec(name="window", pattern=pattern, queries=queries, keys=keys),)
            for pattern in patterns
        )

    def own_head(self, architecture: str, outputs: int, words: nn.Embedding) -> nn.Module | None:
        if architecture != "ForMaskedLM":
            return None
        head = WordHead(self.width, len(words.weight), bias=True)
        head.decoder.weight = cast(nn.Parameter, words.weight)
        return head

    @property
    def angles(self) -> RopeParameters | None:
        return RopeParameters(rope_theta=self.rope_theta) if self.position_type == "rotary" else None

    @property
    def exact_up_to(self) -> int:
        return min(self.radii) + 1

    @property
    def reach(self) -> int:
        return max(self.reaches)

    def backbone(self) -> "CharLM":
        return CharLM(self)


def _spread(name: str, value: object, layers: int) -> PerLayer:
    """One value for each layer."""
    if not isinstance(value, (list, tuple)):
        return (value,) * layers
    if len(value) != layers:
        raise bad(name, f"one number, or one for each of the {layers} layers", value)
    return tuple(tuple(one) if isinstance(one, (list, tuple)) else one for one in value)


def _listed(name: str, value: object) -> Sequence[object]:
    if not isinstance(value, tuple):
        raise bad(name, "a tuple of bytes", value)
    return value


class CharLM(Encoder):
    """ids (N,) of the documents of a layout to hidden states (N, C), each of which tells the next byte.

    >>> tiny = CharLMConfig(width=8, layers=2, heads=2, feed_forward=16, radius=(2, 4))
    >>> CharLM(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    config: CharLMConfig

    def __init__(self, config: CharLMConfig) -> None:
        super().__init__(config)
        shape, relative = (config.heads, config.head_size), config.position_type == "relative"
        self.content_bias = nn.Parameter(torch.zeros(shape)) if relative else None
        self.position_bias = nn.Parameter(torch.zeros(shape)) if relative else None
        for bias in (self.content_bias, self.position_bias):
            if bias is not None:
                nn.init.normal_(bias, std=config.init_std)
        for part in self.modules():
            if isinstance(part, LayerNorm):
                nn.init.normal_(part.weight, mean=1.0, std=config.init_std)

    def layer(self, number: int) -> EncoderLayer:
        c, blocks = self.config, (self.layer_attention(number), self.layer_feed_forward(number))
        return EncoderLayer(c.layer_config, *blocks, final=c.closing_norm and number == c.layers - 1)

    def layer_attention(self, layer: int) -> RotaryAttention | RelativeAttention:
        c = self.config
        kind = RotaryAttention if c.position_type == "rotary" else RelativeAttention
        return kind(c.width, c.heads, dropout=c.attention_dropout)

    def forward(
        self,
        ids: Tensor,
        layout: Layout | ModelPlan,
        token_types: Tensor | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        places, _, layers = cast(EncoderInputs, self.given(layout))
        own = [self.finished(inputs) for inputs in layers]
        x = run(self.layers, self.embeddings, (ids, places, token_types), own, rows=rows)
        return self.last_dropout(x)

    def last_dropout(self, x: Tensor) -> Tensor:
        """What is done in training to the last hidden states, as Transformer-XL does it."""
        return F.dropout(x, self.config.dropout, self.training)

    def finished(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a layer takes beside x, once the weights that all layers share are added."""
        if self.content_bias is None or self.position_bias is None:
            return inputs
        pairs, distances = inputs
        distances = F.dropout(distances, self.config.dropout, self.training and distances.dim() == 2)
        return pairs, distances, ScoreBiases(self.content_bias, self.position_bias)

    def layer_inputs(self, layout: Layout, labels: ClippedDistance | None) -> Iterable[tuple[Any, ...]]:
        return self.inputs_between(layout, layout)

    def inputs_between(self, queries: Layout, keys: Layout) -> list[tuple[Any, ...]]:
        """What each layer reads of a layout whose rows see those of another: its plan and its distances."""
        c, specs = self.config, self.config.attention_between(queries, keys)
        if (rope := c.angles) is not None:
            turn = rotations(rope, c.head_size, queries.sites.position)
            return [(spec.plan(c.heads), turn) for (spec,) in specs]
        farthest = int(max(queries.lengths.max(initial=1), keys.lengths.max(initial=1))) - 1
        limits = [min(reach, farthest) for reach in c.reaches]
        waves = sinusoids(max(limits) + 1, c.width).to(self.device)
        return [
            (spec.plan(c.heads, UnsignedDistance(limit)), waves[: limit + 1])
            for (spec,), limit in zip(specs, limits, strict=True)
        ]


def new_model(config: CharLMConfig) -> TaskModel:
    """A model with new weights: ids (N,) of the documents of a layout to logits (N, vocab) of what follows.

    >>> tiny = CharLMConfig(width=8, layers=2, heads=2, feed_forward=16, radius=(2, 4))
    >>> new_model(tiny)(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 256])
    """
    backbone = config.backbone()
    head = config.own_head("ForMaskedLM", config.vocab_size, backbone.word_embeddings)
    return TaskModel(backbone, cast(nn.Module, head), "ForMaskedLM")


def config_of(model: TaskModel) -> CharLMConfig:
    """The config of a model of bytes."""
    return cast(CharLMConfig, model.backbone.config)


def set_windows(model: TaskModel, radius: tuple[int, ...], dilation: PerLayer | None = None) -> None:
    """Let a model look farther back, or less far; its weights stay as they are."""
    config = config_of(model)
    gaps = config.dilation if dilation is None else dilation
    model.backbone.config = replace(config, radius=radius, dilation=gaps)


def encode(config: CharLMConfig, text: npt.NDArray[np.uint8], name: str) -> Tensor:
    """The ids (n,) of bytes; `name` says in errors whose they are."""
    table = np.full(BYTES, -1, np.int64)
    known = config.alphabet or range(config.vocab_size)
    table[list(known)] = np.arange(config.vocab_size)
    ids = table[text]
    if ids.size and ids.min() < 0:
        place = int(np.argmax(ids < 0))
        wanted = f"of the {config.vocab_size} bytes that the model knows"
        repair = "Train a model of all bytes, or evaluate on text of the same kind."
        raise bad(name, wanted, f"{int(text[place]):#04x} at {place:,}", repair)
    return torch.from_numpy(ids)


def decode(config: CharLMConfig, ids: Iterable[int]) -> bytes:
    """The bytes that ids stand for.

    >>> decode(CharLMConfig(vocab_size=2, alphabet=(97, 122)), [1, 0])
    b'za'
    """
    known = config.alphabet or range(config.vocab_size)
    return bytes(known[token] for token in ids)
