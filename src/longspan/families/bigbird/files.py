"""BigBird's files: BERT's names, a pooler that most classes hold unused, and a deeper answer head."""

from dataclasses import replace
from typing import Any

from longspan.errors import one_of, whole
from longspan.families.base import PRETRAINING
from longspan.families.bert.files import BERT, unlike_bert
from longspan.families.bigbird.lengthen import TO_BIGBIRD
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.schema import Raw, build_config, common, flag, shared, text

DEFAULTS = {"vocab_size": 50358, "hidden_act": "gelu_new", "max_position_embeddings": 4096}
FLAGS = (
    ("use_bias", "bias", True),
    ("rescale_embeddings", "rescale_embeddings", False),
    ("is_decoder", "causal", False),
)
"""Their names and ours of what is true or false, and what it is where nothing is said."""
ATTENTION = {"block_sparse": "sparse", "original_full": "full"}


def read_blocks(raw: Raw) -> dict[str, Any]:
    """Our fields of what is seen."""
    known = {"attention_type": "block_sparse", "block_size": 64, "num_random_blocks": 3, **raw}
    kind = one_of("attention_type", text(known, "attention_type"), ATTENTION)
    return {
        "attention_type": ATTENTION[kind],
        "block": whole("block_size", known["block_size"], 1),
        "random_blocks": whole("num_random_blocks", known["num_random_blocks"], 0),
    }


def write_blocks(config: BigBirdConfig) -> dict[str, Any]:
    """The reverse; there a decoder is causal only with full attention, which ours has."""
    full = config.causal or config.attention_type == "full"
    return {
        "attention_type": "original_full" if full else "block_sparse",
        "block_size": config.block,
        "num_random_blocks": config.random_blocks,
    }


def unlike_blocks(config: BigBirdConfig) -> str | None:
    """What Hugging Face has no words for in what is seen."""
    if config.attention_type == "full" or config.causal:
        return None
    if config.random != "hf":
        return "another plan of random blocks"
    if config.random_blocks == 0:
        return "no random blocks"
    usual = config.short == (5 + 2 * config.random_blocks) * config.block
    return None if usual else "another length up to which attention is full"


def read(raw: Raw) -> BigBirdConfig:
    """Our config of theirs."""
    flags = {ours: flag(raw, theirs, usual) for theirs, ours, usual in FLAGS}
    fields = common(raw, pad=0, defaults=DEFAULTS, offset=False)
    return build_config(BigBirdConfig, fields | read_blocks(raw) | flags)


def write(config: BigBirdConfig) -> dict[str, Any]:
    """Their config of ours."""
    flags = {theirs: getattr(config, ours) for theirs, ours, _ in FLAGS}
    return shared(config) | write_blocks(config) | flags


def cannot(config: BigBirdConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.position_offset:
        return "positions that do not begin at 0"
    if not config.out_bias:
        return "attention whose output has no bias"
    return unlike_blocks(config) or unlike_bert(config, rescales=True)


_POOLER = ("{backbone}pooler",)
BIGBIRD = replace(
    BERT,
    model_type="big_bird",
    name="BigBird",
    own_type="longspan-bigbird",
    config=BigBirdConfig,
    heads={
        **BERT.heads,
        "Model": {"dense": "{backbone}pooler"},
        "ForSequenceClassification": {"dense": "classifier.dense", "out": "classifier.out_proj"},
        "ForQuestionAnswering": {
            "feed_forward.up": "qa_classifier.intermediate.dense",
            "feed_forward.down": "qa_classifier.output.dense",
            "norm": "qa_classifier.output.LayerNorm",
            "out": "qa_classifier.qa_outputs",
        },
        "ForMultipleChoice": {"dense": "{backbone}pooler", "out": "classifier"},
    },
    head_style="bigbird",
    read=read,
    write=write,
    cannot=cannot,
    fields=frozenset({"attention_type", "block_size", "num_random_blocks", *(name for name, _, _ in FLAGS)}),
    heads_in_old_files=lambda stored: "bert" if stored.get("bert_heads") else "bigbird",
    unused={
        "ForMaskedLM": _POOLER,
        "ForCausalLM": _POOLER,
        PRETRAINING: (*_POOLER, "cls.seq_relationship"),
        "ForSequenceClassification": _POOLER,
        "ForTokenClassification": _POOLER,
    },
    lengthening=TO_BIGBIRD,
    presets={
        "bigbird-base": BigBirdConfig(),
        "bigbird-large": BigBirdConfig(width=1024, layers=24, heads=16, feed_forward=4096),
    },
)
