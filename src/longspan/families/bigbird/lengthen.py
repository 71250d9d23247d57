"""BigBird from a short encoder."""

from collections.abc import Mapping

from longspan.errors import whole
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.lengthening import Lengthening, Option, Short, require_full_attention


def config(short: Short, options: Mapping[str, Option]) -> EncoderConfig:
    """The config of the new model; it keeps the source's heads where BigBird's own compute something else."""
    require_full_attention(short)
    old, ending = short.config, short.architecture
    kept = ending in ("ForSequenceClassification", "ForQuestionAnswering") or (
        ending == "ForMultipleChoice" and old.token_types > 1  # a choice needs the types
    )
    fields = short.fields(
        position_offset=0,
        block=whole("block", options.get("block", 64), 1),
        head_style=old.head_style if kept else "bigbird",
    )
    return short.keep_head(BigBirdConfig(**fields))


TO_BIGBIRD = Lengthening(name="bigbird", config=config, options={"block": "tokens of a block (64)"})
