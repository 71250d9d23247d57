"""DistilBERT's files: a BERT without token types and pooler, under names of its own."""

from dataclasses import replace

from longspan.families.bert.files import BERT
from longspan.families.bert.files import read as read_bert
from longspan.families.bert.model import BertConfig
from longspan.families.schema import Raw, flag

NAMES = {
    "dim": "hidden_size",
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "hidden_dim": "intermediate_size",
    "activation": "hidden_act",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
SAME = ("vocab_size", "max_position_embeddings", "initializer_range", "pad_token_id", "quantization_config")


def read(raw: Raw) -> BertConfig:
    """Our config of theirs; a sinusoidal table is stored like any other."""
    flag(raw, "sinusoidal_pos_embds", False)
    known = {name: raw[name] for name in SAME if name in raw}
    known |= {bert: raw[name] for name, bert in NAMES.items() if name in raw}
    return read_bert({"num_hidden_layers": 6, **known, "type_vocab_size": 1, "layer_norm_eps": 1e-12})


DISTILBERT = replace(
    BERT,
    model_type="distilbert",
    name="DistilBert",
    prefix="distilbert.",
    heads={
        "Model": {"dense": "{backbone}pooler.dense"},
        "ForMaskedLM": {"dense": "vocab_transform", "norm": "vocab_layer_norm", "decoder": "vocab_projector"},
        "ForSequenceClassification": {"dense": "pre_classifier", "out": "classifier"},
        "ForTokenClassification": {"out": "classifier"},
        "ForQuestionAnswering": {"out": "qa_outputs"},
        "ForMultipleChoice": {"dense": "pre_classifier", "out": "classifier"},
    },
    ties={"vocab_projector.weight": "{backbone}embeddings.word_embeddings.weight"},
    read=read,
    unused={},
    backbone={
        "embeddings.words": ("embeddings.word_embeddings",),
        "embeddings.positions": ("embeddings.position_embeddings",),
        "embeddings.types": (),
        "embeddings.norm": ("embeddings.LayerNorm",),
        "layers.#.attention.qkv": tuple(f"transformer.layer.#.attention.{name}_lin" for name in "qkv"),
        "layers.#.attention.out": ("transformer.layer.#.attention.out_lin",),
        "layers.#.attention_norm": ("transformer.layer.#.sa_layer_norm",),
        "layers.#.feed_forward.up": ("transformer.layer.#.ffn.lin1",),
        "layers.#.feed_forward.down": ("transformer.layer.#.ffn.lin2",),
        "layers.#.feed_forward_norm": ("transformer.layer.#.output_layer_norm",),
    },
    activations={"ForSequenceClassification": "relu", "ForMultipleChoice": "relu"},
    read_only=True,
    presets={},
)
