"""Longer documents for models with rotary positions: the same weights, and angles that grow more slowly."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from longspan.errors import bad, number, one_of, whole
from longspan.families.config import LARGEST, EncoderConfig
from longspan.families.lengthening import Lengthening, Option, Short
from longspan.nn.rope import RopeParameters

TIMES = 4
"""How many times as long documents become, if nobody says how long."""
SCALINGS = ("yarn", "ntk", "dynamic", "linear")
OF_YARN = ("beta_fast", "beta_slow", "attention_factor")


def config(short: Short, options: Mapping[str, Option]) -> EncoderConfig:
    """The config of the new model; layers with a window keep their angles, as no distance in it grows."""
    old = short.config
    repair = "A model is never made shorter: give at least the length that it has."
    whole("to", short.to, old.positions, repair, most=LARGEST)
    if old.angles is None:
        raise bad("source", "a model with rotary positions, for rope", old.family)
    rope = scaled(old.angles, old.positions, short.to, old.head_size, options)
    changes: dict[str, Any] = {"positions": short.to, "rope": rope}
    if "radius" in options:
        if not any(field.name == "radius" for field in fields(old)):
            raise bad("radius", "left out for a model without windows", options["radius"])
        changes["radius"] = whole("radius", options["radius"], 1)
    return replace(old, **changes)


def scaled(
    rope: RopeParameters, short: int, to: int, size: int, options: Mapping[str, Option]
) -> RopeParameters:
    """The angles for documents of `to` tokens, of a model that reads `short`, with heads of `size`.

    >>> scaled(RopeParameters(), 512, 2048, 64, {}).factor
    4.0
    >>> scaled(RopeParameters(), 512, 2048, 64, {"scaling": "ntk"}).rope_theta > 4 * 10_000
    True
    """
    scaling = one_of("scaling", options.get("scaling", "yarn"), SCALINGS)
    for name in (name for name in OF_YARN if name in options and scaling != "yarn"):
        raise bad(name, "given for scaling yarn only", scaling)
    if to == short and "factor" not in options and "scaling" not in options:
        return rope
    if rope.rope_type not in ("default", scaling):
        raise bad("scaling", f"{rope.rope_type}, as the source has it", scaling)
    longer = to / short
    if scaling == "ntk":  # by a larger base alone, as bloc97 proposed, which every program can read
        factor = _factor(options, longer)
        return replace(rope, rope_theta=rope.rope_theta * factor ** (size / max(size - 2, 1)))
    known = rope.rope_type == scaling
    original = rope.original_max_position_embeddings if known and scaling != "linear" else short
    if scaling == "linear":
        return replace(rope, rope_type="linear", factor=rope.factor * _factor(options, longer))
    of_dynamic = rope.factor if known else 2.0
    usual = of_dynamic if scaling == "dynamic" else to / original
    own: dict[str, Any] = {
        name: number(name, options[name], 1e-6, 1e6) for name in OF_YARN if name in options
    }
    return replace(
        rope,
        rope_type=scaling,
        factor=_factor(options, usual),
        original_max_position_embeddings=original,
        **own,
    )


def _factor(options: Mapping[str, Option], usual: float) -> float:
    return number("factor", options.get("factor", usual), 1.0, 1e6)


def exact(old: EncoderConfig, new: EncoderConfig) -> int:
    """The longest document on which both compute the same; 0: there is none."""
    rope, limit = new.angles, old.positions
    if rope is not None and rope != old.angles:
        limit = rope.original_max_position_embeddings if rope.rope_type == "dynamic" else 0
    radii: list[int | None] = [getattr(one, "radius", None) for one in (old, new)]
    near = [radius + 1 for radius in radii if radius is not None and radii[0] != radii[1]]
    return min([limit, *near])


def notes(config: EncoderConfig) -> dict[str, str]:
    """How the angles grow, in words."""
    rope = config.angles
    assert rope is not None
    words = [f"base {rope.rope_theta:.6g}", rope.rope_type]
    words += [f"factor {rope.factor:g}"] if rope.rope_type != "default" else []
    if rope.rope_type in ("yarn", "dynamic"):
        words.append(f"from {rope.original_max_position_embeddings} tokens")
    return {"angles": ", ".join(words)}


ROPE = Lengthening(
    name="rope",
    config=config,
    options={
        "scaling": "yarn (default), ntk, dynamic or linear",
        "factor": "how much angles are scaled (the new length by the old one; dynamic: 2)",
        "radius": "tokens seen on each side by layers with a window (as it was)",
        "beta_fast": "yarn: angles that turn so often within the old length stay (32)",
        "beta_slow": "yarn: those that turn less often are scaled in full (1)",
        "attention_factor": "yarn: what queries and keys are multiplied by (0.1 ln(factor) + 1)",
    },
    notes=notes,
    keeps_positions=True,
    scales_angles=True,
    exact=exact,
)
