"""ModernBERT's files, by the keys of today and by those of its first release."""

from typing import Any

from longspan.errors import one_of, whole
from longspan.families.alternating import FULL, SLIDING, read_kinds
from longspan.families.base import Family
from longspan.families.modernbert.model import ModernBertConfig
from longspan.families.rotary import LONGEST, read_length, read_ropes, unsaid, write_length, write_rope
from longspan.families.schema import Raw, build_config, flag, refuse_unsupported, text

SAME = {
    "vocab_size": "vocab_size",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "num_attention_heads": "heads",
    "intermediate_size": "feed_forward",
    "hidden_activation": "activation",
    "attention_dropout": "attention_dropout",
    "embedding_dropout": "embedding_dropout",
    "mlp_dropout": "activation_dropout",
    "norm_eps": "norm_eps",
    "initializer_range": "init_std",
    "classifier_activation": "classifier_activation",
}
FLAGS = {
    "norm_bias": ("norm_bias", False),
    "attention_bias": ("attention_bias", False),
    "mlp_bias": ("feed_forward_bias", False),
    "decoder_bias": ("decoder_bias", True),
    "classifier_bias": ("classifier_bias", False),
}
WORDS = ("hidden_activation", "classifier_activation", "classifier_pooling")
POOLED = {"cls": "first", "mean": "mean"}
PAD = 50283
THETA = {FULL: 160_000.0, SLIDING: 10_000.0}
OLD_THETA = {FULL: "global_rope_theta", SLIDING: "local_rope_theta"}
OLD = frozenset({"global_attn_every_n_layers", *OLD_THETA.values(), "rope_scaling", "layer_norm_eps"})
"""Fields of the first release; of two for the same transformers, too, reads norm_eps only."""


def read(raw: Raw) -> ModernBertConfig:
    """Our config of theirs."""
    refuse_unsupported(raw)
    for name in (name for name in WORDS if name in raw):
        text(raw, name)
    stated = {ours: raw[theirs] for theirs, ours in SAME.items() if theirs in raw}
    stated |= {ours: flag(raw, theirs, usual) for theirs, (ours, usual) in FLAGS.items()}
    pooling = one_of("classifier_pooling", raw.get("classifier_pooling", "cls"), POOLED)
    layers = whole("num_hidden_layers", raw.get("num_hidden_layers", 22), 1, most=1024)
    longest, stated["positions"] = read_length(raw, 8192)
    thetas = {kind: raw.get(old, THETA[kind]) for kind, old in OLD_THETA.items()}
    ropes = read_ropes(raw, thetas, longest=longest, scaled=thetas)
    window = whole("local_attention", raw.get("local_attention", 128), 2)
    more = {
        "radius": window // 2,
        "layer_types": read_kinds(ModernBertConfig, raw, layers, "global_attn_every_n_layers"),
        "rope": ropes[FULL],
        "local_rope": ropes[SLIDING],
        "classifier_pooling": POOLED[pooling],
    }
    if raw.get("pad_token_id", PAD) is not None:
        more["pad_id"] = whole("pad_token_id", raw.get("pad_token_id", PAD), 0)
    return build_config(ModernBertConfig, stated | more, SAME | {"local_attention": "radius"})


def write(config: ModernBertConfig) -> dict[str, Any]:
    """Their config of ours."""
    (pooling,) = (theirs for theirs, ours in POOLED.items() if ours == config.classifier_pooling)
    return {
        **{theirs: getattr(config, ours) for theirs, ours in SAME.items()},
        **{theirs: getattr(config, ours) for theirs, (ours, _) in FLAGS.items()},
        **write_length(config.positions, (config.rope, config.local_rope)),
        "local_attention": 2 * config.radius,
        "layer_types": list(config.kinds),
        "rope_parameters": {FULL: write_rope(config.rope), SLIDING: write_rope(config.local_rope)},
        "classifier_pooling": pooling,
        "pad_token_id": config.pad_id,
    }


def cannot(config: ModernBertConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.token_types or config.embedding_size is not None or config.buckets:
        return "token types, projected embeddings or biases by distance"
    if not config.norm_first or config.rescale_embeddings:
        return "norms behind the blocks, or rescaled embeddings"
    return unsaid(config.positions, config.rope, config.local_rope)


HEAD = {"dense": "head.dense", "norm": "head.norm"}
MODERNBERT = Family(
    model_type="modernbert",
    name="ModernBert",
    own_type="longspan-modernbert",
    config=ModernBertConfig,
    prefix="model.",
    heads={
        "Model": {},
        "ForMaskedLM": HEAD | {"decoder": "decoder"},
        "ForSequenceClassification": HEAD | {"out": "classifier"},
        "ForTokenClassification": HEAD | {"out": "classifier"},
        "ForQuestionAnswering": HEAD | {"out": "classifier"},
        "ForMultipleChoice": HEAD | {"out": "classifier"},
    },
    ties={"decoder.weight": "{backbone}embeddings.tok_embeddings.weight"},
    read=read,
    write=write,
    cannot=cannot,
    fields=frozenset(
        {*SAME, *FLAGS, "local_attention", "layer_types", "rope_parameters", "classifier_pooling"}
    ),
    stale=OLD | {LONGEST},
    head_style="own",
    heads_in_old_files=lambda stored: "own",
    backbone={
        "embeddings.words": ("embeddings.tok_embeddings",),
        "embeddings.norm": ("embeddings.norm",),
        "layers.#.attention_norm": ("layers.#.attn_norm",),
        "layers.#.attention.qkv": ("layers.#.attn.Wqkv",),
        "layers.#.attention.out": ("layers.#.attn.Wo",),
        "layers.#.feed_forward_norm": ("layers.#.mlp_norm",),
        "layers.#.feed_forward.up": ("layers.#.mlp.Wi",),
        "layers.#.feed_forward.down": ("layers.#.mlp.Wo",),
        "layers.#.closing_norm": ("final_norm",),
    },
    presets={
        "modernbert-base": ModernBertConfig(pad_id=PAD),
        "modernbert-large": ModernBertConfig(width=1024, layers=28, heads=16, feed_forward=2624, pad_id=PAD),
    },
)
