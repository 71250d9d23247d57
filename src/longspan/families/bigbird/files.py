"""BigBird's files: BERT's names, a pooler that most classes hold unused, and a deeper answer head."""

from dataclasses import replace
from typing import Any

from longspan.checkpoints.families.base import PRETRAINING, unlike_bert
from longspan.checkpoints.families.bert import BERT
from longspan.checkpoints.schema import Raw, common, flag, made, shared, text
from longspan.errors import bad, whole
from longspan.models.bigbird import BigBirdConfig

DEFAULTS = {"vocab_size": 50358, "hidden_act": "gelu_new", "max_position_embeddings": 4096}
ATTENTION = {"block_sparse": "sparse", "original_full": "full"}


def read_blocks(raw: Raw) -> dict[str, Any]:
    """Our fields of what is seen."""
    given = {"attention_type": "block_sparse", "block_size": 64, "num_random_blocks": 3, **raw}
    kind = text(given, "attention_type")
    if kind not in ATTENTION:
        raise bad("attention_type", f"one of {', '.join(ATTENTION)}", kind)
    return {
        "attention": ATTENTION[kind],
        "block": whole("block_size", given["block_size"], 1),
        "random_blocks": whole("num_random_blocks", given["num_random_blocks"], 0),
    }


def write_blocks(config: BigBirdConfig) -> dict[str, Any]:
    """The same the other way round; a decoder is causal there only with full attention, which ours has."""
    full = config.causal or config.attention == "full"
    return {
        "attention_type": "original_full" if full else "block_sparse",
        "block_size": config.block,
        "num_random_blocks": config.random_blocks,
    }


def unlike_blocks(config: BigBirdConfig) -> str | None:
    """What Hugging Face has no words for in what is seen."""
    if config.attention == "full" or config.causal:
        return None
    if config.random != "hf":
        return "another plan of random blocks"
    if config.random_blocks == 0:
        return "no random blocks"
    usual = config.short == (5 + 2 * config.random_blocks) * config.block
    return None if usual else "another length up to which attention is full"


def read(raw: Raw) -> BigBirdConfig:
    """Our config of theirs."""
    return made(
        BigBirdConfig,
        common(raw, pad=0, defaults=DEFAULTS, offset=False)
        | read_blocks(raw)
        | {
            "bias": flag(raw, "use_bias", True),
            "rescale_embeddings": flag(raw, "rescale_embeddings", False),
            "causal": flag(raw, "is_decoder", False),
        },
    )


def write(config: BigBirdConfig) -> dict[str, Any]:
    """Their config of ours."""
    return (
        shared(config)
        | write_blocks(config)
        | {
            "use_bias": config.bias,
            "rescale_embeddings": config.rescale_embeddings,
            "is_decoder": config.causal,
        }
    )


def cannot(config: BigBirdConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.bert_heads:
        return "heads of BERT"
    if config.position_offset:
        return "positions that do not begin at 0"
    if not config.out_bias:
        return "attention whose output has no bias"
    return unlike_blocks(config) or unlike_bert(config, rescales=True)


_POOLER = ("{body}pooler",)
BIGBIRD = replace(
    BERT,
    model_type="big_bird",
    name="BigBird",
    own_type="longspan-bigbird",
    kind=BigBirdConfig,
    heads={
        **BERT.heads,
        "encode": {"dense": "{body}pooler"},
        "classify": {"dense": "classifier.dense", "out": "classifier.out_proj"},
        "answer": {
            "feed_forward.up": "qa_classifier.intermediate.dense",
            "feed_forward.down": "qa_classifier.output.dense",
            "norm": "qa_classifier.output.LayerNorm",
            "out": "qa_classifier.qa_outputs",
        },
        "choose": {"dense": "{body}pooler", "out": "classifier"},
    },
    read=read,
    write=write,
    cannot=cannot,
    spare={
        "ForMaskedLM": _POOLER,
        "ForCausalLM": _POOLER,
        PRETRAINING: (*_POOLER, "cls.seq_relationship"),
        "ForSequenceClassification": _POOLER,
        "ForTokenClassification": _POOLER,
    },
)
