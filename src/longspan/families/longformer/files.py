"""Longformer files: Hugging Face's, and allenai's original ones, which count the window on one side."""

from dataclasses import replace

from longspan.errors import bad, whole
from longspan.families.bert.files import unlike_bert
from longspan.families.longformer.lengthen import TO_LONGFORMER
from longspan.families.longformer.model import LongformerConfig
from longspan.families.roberta.files import ROBERTA
from longspan.families.schema import Raw, build_config, common, numbers, shared, text

ORIGINAL = ("attention_dilation", "autoregressive")
"""Fields of allenai's configs, which Hugging Face's never had (attention_mode stands in both)."""
MODES = ("tvm", "sliding_chunks", "longformer")


def is_original(raw: Raw) -> bool:
    """Whether allenai's code wrote it: a RoBERTa with a window, or one of its own fields."""
    model_type = raw.get("model_type")
    if model_type == "longformer":
        return any(name in raw for name in ORIGINAL)
    return model_type in (None, "roberta") and "attention_window" in raw


def read(raw: Raw) -> LongformerConfig:
    """Our config of theirs."""
    fields = common(raw, pad=1, defaults={}, offset=True)
    layers, original = whole("num_hidden_layers", fields["layers"], 1, most=1024), is_original(raw)
    gaps = {"dilation": dilation(raw, layers)} if original else {}
    return build_config(LongformerConfig, fields | gaps | {"radius": radii(raw, layers, one_sided=original)})


def radii(raw: Raw, layers: int, *, one_sided: bool) -> tuple[int, ...]:
    """What each layer sees on each side; Hugging Face counts both, allenai one."""
    window = numbers("attention_window", raw.get("attention_window", 512), layers)
    if one_sided:
        return window
    odd = next((size for size in window if size % 2), None)
    if odd is not None:
        raise bad("attention_window", "even, as it counts both sides", odd, f"Write {odd + 1}.")
    return tuple(size // 2 for size in window)


def dilation(raw: Raw, layers: int) -> tuple[int, ...]:
    """The gaps in the windows of allenai's files."""
    if raw.get("autoregressive", False) is not False:
        raise bad("autoregressive", "false", raw["autoregressive"], "The released code never was causal.")
    if "attention_mode" in raw and text(raw, "attention_mode") not in MODES:
        repair = "Longspan computes the sliding window exactly."
        raise bad("attention_mode", f"one of {', '.join(MODES)}", raw["attention_mode"], repair)
    return numbers("attention_dilation", raw.get("attention_dilation", 1), layers)


def cannot(config: LongformerConfig) -> str | None:
    """What Hugging Face has no words for."""
    if config.position_offset != config.pad_id + 1:
        return "positions that do not follow the padding token"
    return unlike_window(config) or unlike_bert(config)


def unlike_window(config: LongformerConfig) -> str | None:
    """What Hugging Face has no words for in Longformer's attention."""
    assert isinstance(config.dilation, tuple)
    if any(gap != 1 for gap in config.dilation):
        return "dilation"
    if config.share_global_projections:
        return "shared global projections"
    divide = not any(max(config.radii) % radius for radius in config.radii)
    return None if divide else "windows that do not divide the widest"


LONGFORMER = replace(
    ROBERTA,
    model_type="longformer",
    name="Longformer",
    own_type="longspan-longformer",
    config=LongformerConfig,
    prefix="longformer.",
    read=read,
    write=lambda config: shared(config) | {"attention_window": [2 * radius for radius in config.radii]},
    cannot=cannot,
    fields=frozenset({"attention_window"}),
    stale=frozenset({"attention_mode", *ORIGINAL}),
    is_original=is_original,
    heads_in_old_files=lambda stored: "roberta",
    lengthening=TO_LONGFORMER,
    presets={
        "longformer-base": LongformerConfig(),
        "longformer-large": LongformerConfig(width=1024, layers=24, heads=16, feed_forward=4096),
    },
)
