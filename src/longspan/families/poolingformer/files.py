"""Poolingformer's files, which are always of our own type: only Longspan has it."""

from dataclasses import replace

from longspan.families.keys import BACKBONE
from longspan.families.longformer.files import LONGFORMER
from longspan.families.poolingformer.lengthen import TO_POOLINGFORMER
from longspan.families.poolingformer.model import PoolingformerConfig

_SECOND = ("query", "key", "value", "pooling.delta")
POOLINGFORMER = replace(
    LONGFORMER,
    model_type="poolingformer",
    name="Poolingformer",
    own_type="longspan-poolingformer",
    config=PoolingformerConfig,
    own_only=True,
    cannot=lambda config: "a second level of attention",
    fields=frozenset(),
    is_original=lambda raw: False,
    backbone=BACKBONE | {name: (name,) for name in (f"layers.#.attention.second.{part}" for part in _SECOND)},
    lengthening=TO_POOLINGFORMER,
    presets={"poolingformer-base": PoolingformerConfig()},
)
