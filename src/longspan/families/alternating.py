"""What families share whose layers see a window, but for some that see the whole document."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import bad, one_of, whole
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.rotary import RotaryConfig
from longspan.families.schema import Raw
from longspan.layout import Layout
from longspan.nn.rope import RopeParameters
from longspan.patterns import Full, Window

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True, kw_only=True)
class AlternatingConfig(RotaryConfig):
    """Sizes of an encoder with two kinds of layers, each with angles of its own.

    >>> AlternatingConfig(layers=4).kinds
    ('full_attention', 'sliding_attention', 'sliding_attention', 'full_attention')
    """

    every: ClassVar[int] = 3
    full_last: ClassVar[bool] = False
    """One of so many layers is full where a model does not say which are: the first of them, or the last."""

    radius: int = 64
    "Tokens seen on each side by the layers with a window."
    layer_types: tuple[str, ...] = ()
    '"full_attention" or "sliding_attention" for each layer; empty: as usual in the family.'
    local_rope: RopeParameters = RopeParameters()  # noqa: RUF009 (it is frozen)
    "The angles of the layers with a window; `rope` has those of the others."

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("radius", self.radius, 1)
        if not isinstance(self.local_rope, RopeParameters):
            raise bad("local_rope", "RopeParameters", self.local_rope)
        if not isinstance(self.layer_types, tuple):
            raise bad("layer_types", "a tuple of words", self.layer_types)
        if self.layer_types and len(self.layer_types) != self.layers:
            raise bad("layer_types", f"one for each of the {self.layers} layers", f"{len(self.layer_types)}")
        for kind in self.layer_types:
            one_of("layer_types", kind, (FULL, SLIDING))

    @classmethod
    def usual_kinds(cls, layers: int, every: int | None = None) -> tuple[str, ...]:
        """How far each layer sees unless a model says otherwise."""
        period = cls.every if every is None else every
        full = period - 1 if cls.full_last else 0
        return tuple(FULL if layer % period == full else SLIDING for layer in range(layers))

    @property
    def kinds(self) -> tuple[str, ...]:
        """How far each layer sees."""
        return self.layer_types or self.usual_kinds(self.layers)

    @property
    def exact_up_to(self) -> int:
        return self.radius + 1 if SLIDING in self.kinds else self.positions

    def layer_rope(self, layer: int) -> RopeParameters:
        return self.rope if self.kinds[layer] == FULL else self.local_rope

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        specs = {
            FULL: (AttentionSpec.within("all tokens", Full(), layout),),
            SLIDING: (AttentionSpec.within("window", Window(self.radius), layout),),
        }
        return tuple(specs[kind] for kind in self.kinds)


def read_kinds(config: type[AlternatingConfig], raw: Raw, layers: int, name: str) -> tuple[str, ...]:
    """`layer_types` of a file, which may state their period `name` instead; nothing where it is as usual."""
    every = whole(name, raw.get(name) or config.every, 1)
    kinds = raw.get("layer_types")
    if kinds is None:
        kinds = list(config.usual_kinds(layers, every))
    if not isinstance(kinds, list):
        raise bad("layer_types", "a list", kinds)
    return () if tuple(kinds) == config.usual_kinds(layers) else tuple(kinds)
