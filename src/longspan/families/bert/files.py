"""BERT's files."""

from longspan.errors import bad
from longspan.families.base import PRETRAINING, Family
from longspan.families.bert.model import BertConfig
from longspan.families.config import EncoderConfig
from longspan.families.schema import Raw, build_config, common, flag, shared


def read(raw: Raw) -> BertConfig:
    """Our config of theirs."""
    known = {name: value for name, value in raw.items() if name != "pad_token_id" or value is not None}
    refuse_decoder(raw)
    if raw.get("feed_forward_type") not in (None, "original"):
        raise bad("feed_forward_type", "'original'", raw["feed_forward_type"], "BERT has no other blocks.")
    return build_config(BertConfig, common(known, pad=0, defaults={}, offset=False))


def refuse_decoder(raw: Raw) -> None:
    """Raise for a model that reads from left to right."""
    if flag(raw, "is_decoder", False):
        raise bad("is_decoder", "false", True, "Longspan reads it as an encoder only.")


def cannot(config: BertConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.radius is not None:
        return "a window"
    if config.position_offset:
        return "positions that do not begin at 0"
    return unlike_bert(config)


def unlike_layers(config: EncoderConfig, *, rescales: bool = False) -> str | None:
    """What no encoder of Hugging Face has in its layers, nor before them unless it `rescales` its words."""
    if config.norm_first:
        return "norms before the blocks"
    if config.rescale_embeddings and not rescales:
        return "rescaled embeddings"
    return "dropout within feed-forward blocks" if config.activation_dropout else None


def unlike_bert(config: EncoderConfig, *, rescales: bool = False) -> str | None:
    """What most families of Hugging Face have no words for, None if there is nothing of the kind."""
    if layers := unlike_layers(config, rescales=rescales):
        return layers
    if config.buckets:
        return "biases by distance"
    if config.embedding_size is not None:
        return "embeddings that are projected"
    return None if config.token_types else "a model without token types"


BERT = Family(
    model_type="bert",
    name="Bert",
    own_type="longspan-bert",
    config=BertConfig,
    prefix="bert.",
    heads={
        "Model": {"dense": "{backbone}pooler.dense"},
        "ForMaskedLM": {
            "dense": "cls.predictions.transform.dense",
            "norm": "cls.predictions.transform.LayerNorm",
            "decoder": "cls.predictions.decoder",
        },
        "ForSequenceClassification": {"dense": "{backbone}pooler.dense", "out": "classifier"},
        "ForTokenClassification": {"out": "classifier"},
        "ForQuestionAnswering": {"out": "qa_outputs"},
        "ForMultipleChoice": {"dense": "{backbone}pooler.dense", "out": "classifier"},
    },
    ties={
        "cls.predictions.decoder.weight": "{backbone}embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    read=read,
    write=shared,
    cannot=cannot,
    head_style="bert",
    heads_in_old_files=lambda stored: "roberta" if stored.get("position_offset", 0) else "bert",
    unused={PRETRAINING: ("{backbone}pooler.dense", "cls.seq_relationship")},
    presets={"bert-base": BertConfig(), "minilm-l6": BertConfig(width=384, layers=6, feed_forward=1536)},
)
