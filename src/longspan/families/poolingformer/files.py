"""Poolingformers, which only Longspan has: their files are always of our own type."""

from dataclasses import replace

from longspan.checkpoints.families.longformer import LONGFORMER
from longspan.checkpoints.keymap import BODY
from longspan.models.poolingformer import PoolingformerConfig

_SECOND = ("query", "key", "value", "pooling.delta")
POOLINGFORMER = replace(
    LONGFORMER,
    model_type="poolingformer",
    name="Poolingformer",
    own_type="longspan-poolingformer",
    kind=PoolingformerConfig,
    cannot=lambda config: "a second level of attention",
    body=BODY | {name: (name,) for name in (f"layers.#.attention.second.{part}" for part in _SECOND)},
)
