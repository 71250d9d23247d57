"""BigBird-Pegasus's files, Hugging Face's and the original ones: norms before the blocks, scaled words."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from longspan.families.bart import files as bart
from longspan.families.bart.files import BART
from longspan.families.bigbird.files import BIGBIRD, read_blocks, unlike_blocks, write_blocks
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.schema import Raw, flag
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.formats.part import Part
from longspan.formats.tensorflow_names import LEAVES, torch_names
from longspan.formats.weights import Weights

_ATTENTION = "self_attn.self"
USUAL = bart.DEFAULTS | {
    "vocab_size": 96103,
    "encoder_layers": 16,
    "decoder_layers": 16,
    "activation_function": "gelu_new",
    "pad_token_id": 0,
    "bos_token_id": 2,
    "eos_token_id": 1,
}


def read(raw: Raw) -> Seq2SeqConfig:
    """Our config of BigBird-Pegasus's."""
    rows, bias = bart.length(raw, "max_position_embeddings", 4096), flag(raw, "use_bias", False)
    encoder = {
        "positions": rows,
        "norm_first": True,
        "rescale_embeddings": flag(raw, "scale_embedding", True),
        "bias": bias,
        "out_bias": bias,
    }
    return bart.read_fields(raw, USUAL, BigBirdConfig, encoder | read_blocks(raw), positions=rows, bias=bias)


def write(config: Seq2SeqConfig) -> dict[str, Any]:
    """BigBird-Pegasus's config of ours."""
    encoder = cast(BigBirdConfig, config.encoder)
    own = {
        "max_position_embeddings": config.positions,
        "scale_embedding": encoder.rescale_embeddings,
        "use_bias": config.bias,
    }
    return bart.write_fields(config) | write_blocks(encoder) | own


def cannot(config: Seq2SeqConfig) -> str | None:
    """What BigBird-Pegasus has no words for."""
    encoder = cast(BigBirdConfig, config.encoder)
    if not config.bias == encoder.bias == encoder.out_bias:
        return "biases in some projections only"
    if encoder.causal:
        return "an encoder that sees only what came before"
    return unlike_blocks(encoder) or bart.unlike_bart(config, 0, same=True, pegasus=True)


_ENCODER = {
    "attention.qkv": tuple(f"{_ATTENTION}.{name}" for name in ("query", "key", "value")),
    "attention.out": ("self_attn.output",),
}
BACKBONE = bart.WORDS | bart.DECODER | bart.side("encoder", _ENCODER)


def _original(side: str) -> dict[str, tuple[str, ...]]:
    here = f"{side}.layer_#"
    layer = {
        "attention.qkv": tuple(f"attention.self.{name}" for name in ("query", "key", "value")),
        "attention.out": ("attention.output.dense",),
        "attention_norm": ("attention.self.LayerNorm",),
        "cross.query": ("attention.encdec.query",),
        "cross.kv": ("attention.encdec.key", "attention.encdec.value"),
        "cross.out": ("attention.encdec_output.dense",),
        "cross_norm": ("attention.encdec.LayerNorm",),
        "feed_forward.up": ("intermediate.dense",),
        "feed_forward.down": ("output.dense",),
        "feed_forward_norm": ("intermediate.LayerNorm",),
    }
    named = {f"{side}.layers.#.{ours}": tuple(f"{here}.{one}" for one in layer[ours]) for ours in layer}
    return named | {
        f"{side}.embeddings.positions": ("embeddings.position_embeddings",),
        f"{side}.embeddings.norm": ("",),  # there is none
        f"{side}.layers.#.closing_norm": (f"{side}.LayerNorm",),
    }


_WORDS = "embeddings.word_embeddings"
ORIGINAL = {"encoder.embeddings.words": (_WORDS,)} | _original("encoder") | _original("decoder")
"""Our modules, and theirs in the checkpoints of google-research/bigbird."""
_LAYER = re.compile(r"\blayer_(\d+)\b")


def variable_names(variables: Iterable[str]) -> dict[str, str]:
    """What variables are called here; those of tables, such as word_embeddings, are whole modules.

    >>> variable_names(["pegasus/embeddings/word_embeddings"])
    {'pegasus/embeddings/word_embeddings': 'pegasus.embeddings.word_embeddings.weight'}
    """
    tables = {name: f"{name}/table" if name.endswith("_embeddings") else name for name in variables}
    names = torch_names(tables.values(), LEAVES | {"table": "weight"})
    return {name: names[plain] for name, plain in tables.items() if plain in names}


def from_original(raw: Raw, weights: Weights) -> Weights:
    """Weights that the original code wrote, by Hugging Face's names; other files are left as they are.

    Both sides read one table of positions there, and biases may stand in a file of a model that has none.
    """
    words = f"{_WORDS}.weight"
    prefix = next((name.removesuffix(words) for name in weights if name.endswith(words)), None)
    if prefix is None:
        return weights
    bias = flag(raw, "use_bias", False)
    theirs = {name: name for name in weights if not name.startswith(prefix)}
    for name in (name for name in weights if name.startswith(prefix)):
        module, _, leaf = name.removeprefix(prefix).rpartition(".")
        projects = ".attention." in module and not module.endswith(".LayerNorm")
        if bias or leaf != "bias" or not projects:
            theirs |= {f"{one}.{leaf}": name for one in _renamed(module)}
    shapes = {ours: weights.shapes[name] for ours, name in theirs.items()}
    return Weights([Part(shapes, lambda ours: weights[theirs[ours]])])


def _renamed(module: str) -> list[str]:
    """What a module of the original code is called; itself if it is none of the model's."""
    numbered, general = _LAYER.search(module), _LAYER.sub("layer_#", module)
    number = numbered[1] if numbered else ""
    renamed = (dict(zip(ORIGINAL[ours], names, strict=True)).get(general) for ours, names in BACKBONE.items())
    return [f"{BART.prefix}{name.replace('#', number)}" for name in renamed if name] or [module]


BIGBIRD_PEGASUS = replace(
    BART,
    model_type="bigbird_pegasus",
    name="BigBirdPegasus",
    read=read,
    write=write,
    cannot=cannot,
    fields=BART.fields | BIGBIRD.fields,
    variable_names=variable_names,
    adapt=from_original,
    config_file=None,
    backbone=BACKBONE,
)
