"""LED's files, a BART with Longformer's encoder: Hugging Face's, and allenai's original ones."""

from dataclasses import replace
from typing import Any, cast

from longspan.errors import whole
from longspan.families.bart import files as bart
from longspan.families.bart.files import BART
from longspan.families.longformer.files import LONGFORMER, ORIGINAL, dilation, radii, unlike_window
from longspan.families.longformer.model import LongformerConfig
from longspan.families.schema import Raw
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.formats.part import Part
from longspan.formats.weights import Weights

POSITIONS = ("max_encoder_position_embeddings", "max_decoder_position_embeddings")
_ATTENTION = "self_attn.longformer_self_attn"


def is_original(raw: Raw) -> bool:
    """Whether allenai's code wrote it: a BART (no "led") with a window on one side, and fields of its own."""
    return raw.get("model_type") in (None, "bart") and (
        any(name in raw and "encoder_layers" in raw for name in ORIGINAL)
        or (raw.get("model_type") == "bart" and "attention_window" in raw)
    )


def read(raw: Raw) -> Seq2SeqConfig:
    """Our config of LED's, Hugging Face's or allenai's."""
    layers = whole("encoder_layers", raw.get("encoder_layers", 12), 1, most=1024)
    original = is_original(raw)
    encoder = {
        "positions": bart.length(raw, POSITIONS[0], 16384),
        "position_offset": 0,
        "radius": radii(raw, layers, one_sided=original),
        "dilation": dilation(raw, layers) if original else 1,
    }
    positions = bart.length(raw, POSITIONS[1], 1024)
    return bart.read_fields(raw, bart.DEFAULTS, LongformerConfig, encoder, positions=positions)


def without_first_rows(raw: Raw, weights: Weights) -> Weights:
    """The weights of a LED; allenai's keep two rows before position 0, as BART does, which are never read."""
    if not is_original(raw):
        return weights
    rows, tables = bart.BEFORE, {name for name in weights if name.endswith(".embed_positions.weight")}
    shapes = {
        name: ((shape[0] - rows, *shape[1:]), dtype) if name in tables else (shape, dtype)
        for name, (shape, dtype) in weights.shapes.items()
    }
    return Weights([Part(shapes, lambda name: weights[name][rows:] if name in tables else weights[name])])


def write(config: Seq2SeqConfig) -> dict[str, Any]:
    """LED's config of ours."""
    encoder = cast(LongformerConfig, config.encoder)
    window = [2 * radius for radius in encoder.radii]
    rows = dict(zip(POSITIONS, (config.encoder.positions, config.positions), strict=True))
    return bart.write_fields(config) | rows | {"attention_window": window}


def cannot(config: Seq2SeqConfig) -> str | None:
    """What LED has no words for."""
    if config.encoder.rescale_embeddings:
        return "rescaled embeddings"
    return unlike_window(cast(LongformerConfig, config.encoder)) or bart.unlike_bart(config, 0, same=False)


_PARTS = "query", "key", "value"
_ENCODER = {
    "attention.qkv": tuple(f"{_ATTENTION}.{name}" for name in _PARTS),
    **{f"attention.global_{name}": (f"{_ATTENTION}.{name}_global",) for name in _PARTS},
    "attention.out": ("self_attn.output",),
}
LED = replace(
    BART,
    model_type="led",
    name="LED",
    prefix="led.",
    read=read,
    write=write,
    cannot=cannot,
    fields=BART.fields | LONGFORMER.fields,
    stale=LONGFORMER.stale,
    is_original=is_original,
    adapt=without_first_rows,
    gone={"ForSequenceClassification": "LED's classifier since its version 5"},
    backbone=bart.WORDS | bart.DECODER | bart.side("encoder", _ENCODER),
)
