"""Poolingformer from a short encoder or a Longformer: a second level that is silent until it is trained."""

from collections.abc import Mapping
from dataclasses import fields, replace

from longspan.errors import bad, whole
from longspan.families.config import EncoderConfig
from longspan.families.lengthening import Lengthening, Option, Short
from longspan.families.longformer import lengthen as longformer
from longspan.families.longformer.model import LongformerConfig
from longspan.families.poolingformer.model import PoolingformerAttention, PoolingformerConfig
from longspan.families.task_model import TaskModel

RADIUS = 128
"""As in the paper, where the source reads at least twice as far."""
ADDED = tuple(
    one.name
    for one in fields(PoolingformerConfig)
    if one.name not in {inherited.name for inherited in fields(LongformerConfig)}
)
"""What a Poolingformer has and a Longformer has not."""


def config(short: Short, options: Mapping[str, Option]) -> EncoderConfig:
    """The config of the new model."""
    if short.config.extends_with_pooling:
        if "radius" in options:
            raise bad("radius", "left out for a Longformer, which keeps its windows", options["radius"])
        near: EncoderConfig = replace(short.config, positions=whole("to", short.to, 1))
    else:
        near = longformer.windows(short, short.radius(options.get("radius"), RADIUS))
    same = {one.name: getattr(near, one.name) for one in fields(LongformerConfig)}
    chosen = {name: options[name] for name in ADDED if name in options}
    if isinstance(layer := chosen.get("two_level"), int):
        chosen["two_level"] = (layer,)
    new = PoolingformerConfig(**same | chosen)
    for name, only in (("share_weights", False), ("residual", True)):
        if getattr(new, name) is not only:
            repair = "Train such a model from new weights."
            raise bad(name, f"{only} here, lest the new model differs from the source", not only, repair)
    return new


def start(model: TaskModel, source: EncoderConfig) -> None:
    """As in a Longformer; every second level starts at zero, so that the model is the one without it."""
    longformer.start(model, source)
    for part in model.modules():
        if isinstance(part, PoolingformerAttention):
            part.second.start_at_zero(part.qkv)


def notes(config: EncoderConfig) -> dict[str, str]:
    """What the second level is, in words."""
    assert isinstance(config, PoolingformerConfig)
    layers = ", ".join(map(str, config.pooled_layers)) or "none"
    grid = f"{config.pooling} of {config.kernel} tokens every {config.stride}"
    return {"second level": f"layers {layers}: radius {config.wide_radius}, {grid}; starts at zero"}


TO_POOLINGFORMER = Lengthening(
    name="poolingformer",
    config=config,
    options={
        "radius": "tokens seen on each side at the first level (128)",
        "wide_radius": "tokens seen on each side at the second level (512)",
        "two_level": "layers with a second level, counted from 0 (a quarter of them)",
        "pooling": "ldconv (default), mean or max",
        **{
            name: "see PoolingformerConfig"
            for name in ADDED
            if name not in ("wide_radius", "two_level", "pooling")
        },
    },
    start=start,
    copied=longformer.copied,
    notes=notes,
)
