"""Longformer from a short encoder, which a decoder may follow."""

from collections.abc import Mapping

from longspan.families.backbone import copy_local_to_global
from longspan.families.config import EncoderConfig
from longspan.families.lengthening import RADIUS, Lengthening, Option, Short, require_full_attention
from longspan.families.longformer.model import LongformerConfig
from longspan.families.task_model import TaskModel


def config(short: Short, options: Mapping[str, Option]) -> EncoderConfig:
    """The config of the new model, in Hugging Face's words as far as they compute the same."""
    usual = 2 * RADIUS if short.has_decoder else RADIUS  # as in the released models
    return windows(short, short.radius(options.get("radius"), usual))


def windows(short: Short, radius: int | tuple[int, ...]) -> LongformerConfig:
    """The config of a Longformer with these windows."""
    require_full_attention(short)
    # Hugging Face's positions begin after the padding token: a BERT gets empty rows before its own.
    lead = short.config.position_offset or short.config.pad_id + 1
    fields = short.fields(position_offset=lead, radius=radius, head_style="roberta")
    longformer = short.keep_head(LongformerConfig(**fields))
    assert isinstance(longformer, LongformerConfig)
    return longformer


def start(model: TaskModel, source: EncoderConfig) -> None:
    """Global projections begin as the local ones, unless the source has learned its own."""
    if not source.extends_with_pooling:
        copy_local_to_global(model)


def copied(source: EncoderConfig) -> tuple[str, ...]:
    """What beside embeddings and layers comes from the source."""
    return () if source.extends_with_pooling else ("global projections from the local ones",)


TO_LONGFORMER = Lengthening(
    name="longformer",
    config=config,
    options={"radius": "tokens seen on each side; or one number for each layer (256; before a decoder 512)"},
    start=start,
    copied=copied,
)
