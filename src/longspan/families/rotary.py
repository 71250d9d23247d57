"""What families with rotary positions share: no position table, and angles for each layer."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from torch import nn

from longspan.engine.labels import ClippedDistance
from longspan.errors import bad, number, one_of, whole
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Encoder
from longspan.families.config import LARGEST, EncoderConfig
from longspan.families.schema import Raw, common, flag, shared
from longspan.layout import Layout
from longspan.nn.rope import KINDS, RopeParameters
from longspan.nn.rotary import RotaryAttention, rotations
from longspan.patterns import Full

USUAL = RopeParameters()
ORIGINAL = "original_max_position_embeddings"
NEEDED: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "ntk": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor", ORIGINAL),
    "llama3": ("factor", ORIGINAL, "low_freq_factor", "high_freq_factor"),
}
"""Fields of rope_parameters that each kind of scaling must state."""
OPTIONAL = {"yarn": ("attention_factor", "beta_fast", "beta_slow", "truncate")}
"""And those that it may."""
LONGEST = "max_scaled_position_embeddings"
"""Our own field of config.json: the longest document, where scaling begins at max_position_embeddings."""
INERT = ("mscale", "mscale_all_dim", "partial_rotary_factor", "type")
"""Fields of rope_parameters that are known, and checked, but are no fields of ours."""
OTHER_NAMES = {
    "embeddings.norm": ("embeddings.LayerNorm",),
    "layers.#.attention.qkv": tuple(f"layers.#.self_attn.{name}_proj" for name in "qkv"),
    "layers.#.attention.out": ("layers.#.self_attn.o_proj",),
    "layers.#.attention_norm": ("layers.#.post_attention_layernorm",),
    "layers.#.feed_forward_norm": ("layers.#.post_mlp_layernorm",),
}
"""Names of transformers' modules in the families whose norms follow the blocks."""


@dataclass(frozen=True, kw_only=True)
class RotaryConfig(EncoderConfig):
    """Sizes of an encoder whose queries and keys are turned by their positions."""

    has_position_table: ClassVar[bool] = False

    token_types: int = 0
    dropout: float = 0.0
    attention_dropout: float = 0.0
    rope: RopeParameters = USUAL
    "The angles, of all layers unless a family has others for some."

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.rope, RopeParameters):
            raise bad("rope", "RopeParameters", self.rope)
        if self.head_size % 2:
            raise bad("width", "an even number for each head", self.width, f"There are {self.heads} heads.")

    @property
    def angles(self) -> RopeParameters:
        return self.rope

    def layer_rope(self, layer: int) -> RopeParameters:
        """The angles of a layer."""
        return self.rope

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        return ((AttentionSpec.within("all tokens", Full(), layout),),) * self.layers


class RotaryEncoder(Encoder):
    """An encoder whose layers turn queries and keys; layers with the same angles share them."""

    config: RotaryConfig

    def layer_attention(self, layer: int) -> nn.Module:
        c = self.config
        return RotaryAttention(c.width, c.heads, dropout=c.attention_dropout)

    def layer_inputs(self, layout: Layout, labels: ClippedDistance | None) -> Iterable[tuple[Any, ...]]:
        c = self.config
        ropes = [c.layer_rope(layer) for layer in range(c.layers)]
        turns = {rope: rotations(rope, c.head_size, layout) for rope in dict.fromkeys(ropes)}
        plans = super().layer_inputs(layout, labels)
        return [(*own, turns[rope]) for own, rope in zip(plans, ropes, strict=True)]


def read_sizes(raw: Raw, *, defaults: Raw, pad: int, theta: float) -> dict[str, Any]:
    """Our fields of a model with rotary positions, whose other sizes have the usual names."""
    if flag(raw, "is_decoder", False):
        raise bad("is_decoder", "false", True, "Longspan reads it as an encoder only.")
    stated = {name: value for name, value in raw.items() if name != "pad_token_id" or value is not None}
    types = whole("type_vocab_size", {**defaults, **raw}.get("type_vocab_size", 2), 0)
    known = common({**stated, "type_vocab_size": types or 1}, pad=pad, defaults=defaults, offset=False)
    size, heads = raw.get("head_dim"), whole("num_attention_heads", known["heads"], 1)
    if size is not None and whole("head_dim", size, 1) * heads != known["width"]:
        raise bad("head_dim", "hidden_size / num_attention_heads", size, "Longspan reads these only.")
    rope = read_rope(
        raw.get("rope_parameters"),
        theta=raw.get("rope_theta") or theta,
        longest=known["positions"],
        scaling=raw.get("rope_scaling"),
    )
    return known | {"token_types": types, "rope": rope}


def write_sizes(config: RotaryConfig) -> dict[str, Any]:
    """The same the other way round."""
    return shared(config) | {"rope_parameters": write_rope(config.rope)}


def unlike_rotary(config: RotaryConfig) -> str | None:
    """What transformers has no words for in a model with rotary positions and norms behind the blocks."""
    if config.embedding_size is not None or config.buckets:
        return "projected embeddings or biases by distance"
    if config.norm_first or config.rescale_embeddings:
        return "norms before the blocks, or rescaled embeddings"
    if config.activation_dropout:
        return "dropout of its own within feed-forward blocks"
    return "such angles" if config.rope.rope_type == "ntk" else None


def read_rope(
    stated: object, *, theta: float, longest: int, name: str = "rope_parameters", scaling: object = None
) -> RopeParameters:
    """The angles that a config.json states, as dictionary of today or of old (`rope_scaling`).

    `longest` is its `max_position_embeddings`.
    """
    raw: dict[str, Any] = {}
    for part, given in ((name, stated), ("rope_scaling", scaling)):
        if given is not None and not isinstance(given, Mapping):
            raise bad(part, "fields of rotary positions", given)
        raw |= dict(given or {})
    if "type" in raw:
        raw.setdefault("rope_type", raw["type"])
    if raw.get("partial_rotary_factor", 1.0) != 1.0:
        raise bad("partial_rotary_factor", "1.0", raw["partial_rotary_factor"], "Longspan turns whole heads.")
    known = [field.name for field in fields(RopeParameters)]
    if other := sorted(raw.keys() - {*known, *INERT}):
        raise bad(
            f"{name}.{other[0]}", f"one of {', '.join(sorted(known))}", raw[other[0]], "Update Longspan."
        )
    kind = one_of("rope_type", raw.get("rope_type", "default"), KINDS)
    said = (*NEEDED[kind], *OPTIONAL.get(kind, ()))
    chosen = {key: raw[key] for key in said if raw.get(key) is not None}
    if kind == "dynamic":  # which transformers counts from the longest document, whatever else is stated
        chosen["original_max_position_embeddings"] = longest
    elif ORIGINAL in NEEDED[kind]:
        chosen.setdefault(ORIGINAL, longest)
    if kind == "yarn":
        chosen |= _yarn(raw, chosen, longest)
    if missing := [key for key in NEEDED[kind] if key not in chosen]:
        raise bad(f"{name}.{missing[0]}", f"stated where rope_type is {kind}", None)
    theta = theta if raw.get("rope_theta") is None else raw["rope_theta"]
    return RopeParameters(rope_type=kind, rope_theta=theta, **chosen)


def _yarn(raw: Mapping[str, Any], chosen: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """What transformers computes where a file leaves it to the others."""
    original = whole(ORIGINAL, chosen[ORIGINAL], 1)
    more: dict[str, Any] = {"factor": longest / original} if "factor" in raw else {}
    more |= {"factor": chosen["factor"]} if "factor" in chosen else {}
    scales = raw.get("mscale"), raw.get("mscale_all_dim")
    if all(scales) and "attention_factor" not in chosen and "factor" in more:
        grown = math.log(number("factor", more["factor"], 1.0, 1e6))
        above, below = (
            0.1 * number(name, one, 1e-6, 1e6) * grown + 1.0
            for name, one in zip(("mscale", "mscale_all_dim"), scales, strict=True)
        )
        more["attention_factor"] = above / below
    return more


def read_ropes(
    raw: Mapping[str, Any], thetas: Mapping[str, float], *, longest: int, scaled: Collection[str]
) -> dict[str, RopeParameters]:
    """The angles of each kind of layer; an old `rope_scaling` is for those that are `scaled`."""
    ropes = raw.get("rope_parameters") or {}
    if not isinstance(ropes, dict) or not {*ropes} <= {*thetas}:
        raise bad("rope_parameters", f"fields of {' and '.join(thetas)}", ropes)
    scaling = raw.get("rope_scaling")
    if isinstance(scaling, dict) and scaling.get("rope_type") is None and "type" in scaling:
        repair = "By the name of type transformers does not read it here."
        raise bad("rope_scaling", "one with a rope_type", scaling, repair)
    found = {
        kind: read_rope(
            ropes.get(kind),
            theta=theta,
            longest=longest,
            name=f"rope_parameters.{kind}",
            scaling=scaling if kind in scaled else None,
        )
        for kind, theta in thetas.items()
    }
    if not all(rope.truncate for rope in found.values()):
        raise bad("truncate", "true", False, "transformers does not read it where layers differ.")
    return found


def read_length(raw: Mapping[str, Any], usual: int) -> tuple[int, int]:
    """The `max_position_embeddings` of a config.json, and the tokens of the longest document."""
    stated = whole("max_position_embeddings", raw.get("max_position_embeddings", usual), 1, most=LARGEST)
    return stated, whole(LONGEST, raw.get(LONGEST) or stated, 1, most=LARGEST)


def write_length(positions: int, ropes: Iterable[RopeParameters]) -> dict[str, Any]:
    """The same the other way round."""
    originals = {rope.original_max_position_embeddings for rope in ropes if rope.rope_type == "dynamic"}
    stated = min(originals, default=positions)
    return {"max_position_embeddings": stated} | ({LONGEST: positions} if stated != positions else {})


def write_rope(rope: RopeParameters) -> dict[str, Any]:
    """What a config.json states of the angles: what transformers asks for, and what is not as usual."""
    kind, usual = rope.rope_type, RopeParameters()
    said = {name: getattr(rope, name) for name in NEEDED[kind]}
    more = {name: getattr(rope, name) for name in OPTIONAL.get(kind, ())}
    said |= {name: value for name, value in more.items() if value != getattr(usual, name)}
    return {"rope_theta": rope.rope_theta, "rope_type": kind} | said


def unsaid(positions: int, *ropes: RopeParameters) -> str | None:
    """What transformers has no words for in these angles of one model."""
    originals = {rope.original_max_position_embeddings for rope in ropes if rope.rope_type == "dynamic"}
    strange = any(rope.rope_type == "ntk" for rope in ropes) or len(originals) > 1
    untruncated = len(ropes) > 1 and not all(rope.truncate for rope in ropes)
    beyond = any(original > positions for original in originals)
    return "such angles" if strange or untruncated or beyond else None
