"""The config of a long model for that of a short one."""

from dataclasses import fields, replace

from torch import Tensor

from longspan.checkpoints.streams import etc_config
from longspan.errors import bad, whole
from longspan.models.bert import BertConfig
from longspan.models.bigbird import BigBirdConfig
from longspan.models.build import head_activation
from longspan.models.config import EncoderConfig
from longspan.models.longformer import LongformerConfig
from longspan.models.mpnet import MPNetConfig
from longspan.models.stitched import StitchedConfig

PATTERNS = ("longformer", "bigbird", "etc", "poolingformer", "stitched")
RADIUS = 256
Radius = int | tuple[int, ...]


def long_config(
    old: EncoderConfig, task: str, to: int, pattern: str, radius: Radius | None, block: int | None
) -> EncoderConfig:
    """The config of the new model, in Hugging Face's words as far as they compute the same."""
    if not isinstance(old, (BertConfig, MPNetConfig)) or getattr(old, "radius", None) is not None:
        kind = type(old).__name__.removesuffix("Config")
        raise bad("source", "a short model that sees everything, such as BERT or RoBERTa", kind)
    if pattern not in PATTERNS:
        raise bad("pattern", f"one of {', '.join(PATTERNS)}", pattern)
    common = {one.name: getattr(old, one.name) for one in fields(EncoderConfig)}
    common |= {"positions": whole("to", to, 1), "head_activation": "usual"}
    seen = min(RADIUS, max(1, old.positions // 2)) if radius is None else radius
    if pattern == "longformer":
        if block is not None:
            raise bad("block", "given for bigbird and etc only", block)
        # Hugging Face's positions begin behind the padding token: a BERT gets empty rows before its own.
        lead = old.position_offset or old.pad_id + 1
        made: EncoderConfig = LongformerConfig(**common | {"position_offset": lead, "radius": seen})
    elif pattern == "etc":
        made = etc_config(old, to, seen, block)
    else:
        if radius is not None:
            raise bad("radius", "given for longformer and etc only", radius)
        # BigBird's own heads for these tasks compute something else; a choice needs the types.
        kept = task in ("classify", "answer") or (task == "choose" and old.types > 1)
        size = 64 if block is None else block
        made = BigBirdConfig(**common | {"position_offset": 0, "block": size, "bert_heads": kept})
    act = head_activation(old, task)
    same = task not in ("fill", "classify", "choose") or head_activation(made, task) == act
    return made if same else replace(made, head_activation=act)


def stitched_config(
    old: EncoderConfig,
    radius: Radius | None,
    block: int | None,
    stitching: int | None,
    salience: Tensor | None,
) -> StitchedConfig:
    """The config of the new model: all sizes as they were."""
    if type(old) is not BertConfig or old.radius is not None:
        kind = type(old).__name__.removesuffix("Config")
        raise bad("source", "a BERT or RoBERTa that sees everything, for stitched", kind)
    if salience is not None and salience.shape != (old.vocab_size,):
        raise bad("salience", f"of shape ({old.vocab_size},), one for each word", tuple(salience.shape))
    given = {"radius": radius, "block": block, "stitching": stitching}
    chosen = {name: value for name, value in given.items() if value is not None}
    same = {one.name: getattr(old, one.name) for one in fields(EncoderConfig)}
    return StitchedConfig(**same | chosen, salience=salience is not None)
