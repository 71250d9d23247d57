"""Poolingformer from a short encoder or a Longformer: a second level that is silent until it is trained."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from torch import nn

from longspan.checkpoints.long_configs import Radius, long_config
from longspan.errors import bad, whole
from longspan.models.config import EncoderConfig
from longspan.models.longformer import LongformerConfig
from longspan.models.poolingformer import PoolingformerConfig
from longspan.nn.attention import LongformerAttention

RADIUS = 128
"""As in the paper, where the source reads at least twice as far."""


def poolingformer_config(
    old: EncoderConfig,
    task: str,
    to: int,
    radius: Radius | None,
    block: int | None,
    second: Mapping[str, Any] | None,
) -> PoolingformerConfig:
    """The config of the new model; `second` are fields of PoolingformerConfig that a Longformer has not."""
    if type(old) is LongformerConfig:
        for name, given in (("radius", radius), ("block", block)):
            if given is not None:
                raise bad(name, "left out for a Longformer, which keeps its windows", given)
        near: EncoderConfig = replace(old, positions=whole("to", to, 1))
    else:
        reach = min(RADIUS, max(1, old.positions // 2)) if radius is None else radius
        near = long_config(old, task, to, "longformer", reach, block)
    chosen = dict(second or {})
    added = {one.name for one in fields(PoolingformerConfig)} - {one.name for one in fields(LongformerConfig)}
    if wrong := next((name for name in chosen if name not in added), None):
        raise bad("second", f"fields of its second level: {', '.join(sorted(added))}", wrong)
    same = {one.name: getattr(near, one.name) for one in fields(LongformerConfig)}
    config = PoolingformerConfig(**same | chosen)
    for name, only in (("share_weights", False), ("residual", True)):
        if getattr(config, name) is not only:
            repair = "Train such a model from new weights."
            raise bad(name, f"{only} here, lest the new model differs from the source", not only, repair)
    return config


def begin_second_levels(model: nn.Module) -> None:
    """Every second level starts at zero, so that the model is the one without it."""
    for part in model.modules():
        if isinstance(part, LongformerAttention) and part.second is not None:
            part.second.start_at_zero(part.qkv)


def second_level(config: EncoderConfig) -> str | None:
    """What the second level of a model is, in words; None if it has none."""
    if not isinstance(config, PoolingformerConfig):
        return None
    layers = ", ".join(map(str, config.two_level or ())) or "none"
    grid = f"{config.pooling} of {config.kernel} tokens every {config.stride}"
    return f"layers {layers}: radius {config.wide_radius}, {grid}; starts at zero"
