"""adapter_config.json, as peft writes it: fields that change what an adapter means are known, or refused."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longspan.errors import bad, number, refused, whole
from longspan.formats.atomic import as_json
from longspan.formats.files import inside, read_json
from longspan.nn.lora import MOST_RANK, LoraConfig

ADAPTER_CONFIG = "adapter_config.json"
MOST_NAMES = 4096
"""Modules that can have a rank or a scale of their own."""
KINDS = {
    "ForSequenceClassification": "SEQ_CLS",
    "ForTokenClassification": "TOKEN_CLS",
    "ForQuestionAnswering": "QUESTION_ANS",
    "ForConditionalGeneration": "SEQ_2_SEQ_LM",
    "Model": "FEATURE_EXTRACTION",
}
"""What peft calls the tasks of transformers' classes."""
READ = ("r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern")
NEUTRAL = {
    "task_type",
    "auto_mapping",
    "peft_version",
    "base_model_name_or_path",
    "revision",
    "inference_mode",
    "target_modules",
    "exclude_modules",
    "lora_dropout",
    "modules_to_save",
    "layers_to_transform",
    "layers_pattern",
    "megatron_core",
    "eva_config",
    "qalora_group_size",
    "ensure_weight_tying",
}
"""Fields that say how it was trained, or what the tensors themselves say."""
STARTS = (True, False, None, "gaussian", "orthogonal", "eva")
"""Ways to begin that leave the weights of the model as they are."""
_NAME = re.compile(r"[\w.]{1,500}", re.ASCII)


@dataclass(frozen=True)
class AdapterConfig:
    """How the changes of an adapter are scaled."""

    r: int
    alpha: float
    use_rslora: bool
    ranks: Mapping[str, float]
    "Other ranks, by the ends of names."
    alphas: Mapping[str, float]

    def rank(self, name: str) -> int:
        """The rank of a module's change."""
        return int(_own(self.ranks, name, self.r))

    def scaling(self, name: str) -> float:
        """What the product of a module's thin matrices is multiplied by."""
        rank, alpha = self.rank(name), _own(self.alphas, name, self.alpha)
        return alpha / (math.sqrt(rank) if self.use_rslora else rank)


def read_adapter_config(folder: Path) -> AdapterConfig:
    """The checked config of an adapter of low rank; anything else that peft can write is refused."""
    path = inside(folder, ADAPTER_CONFIG)
    stated = read_json(path)
    if stated.get("peft_type") != "LORA":
        raise refused(path, f"it is of the type {_shown(stated.get('peft_type'))}", "Longspan merges LoRA.")
    if stated.get("bias", "none") != "none":
        raise refused(path, f"it trained biases ({_shown(stated['bias'])})", "Merge it by peft.")
    if stated.get("init_lora_weights", True) not in STARTS:
        how = _shown(stated["init_lora_weights"])
        raise refused(path, f"it belongs to weights that {how} has changed", "Merge it by peft.")
    known = {*READ, *NEUTRAL, "peft_type", "bias", "init_lora_weights"}
    for name, value in stated.items():
        if name not in known and value not in (None, False, {}, []):
            raise refused(
                path, f"Longspan does not know {_shown(name)}: {_shown(value)}", "Merge it by peft."
            )
    rslora = stated.get("use_rslora", False)
    if not isinstance(rslora, bool):
        raise bad("use_rslora", "true or false", rslora)
    return AdapterConfig(
        r=whole("r", stated.get("r", 8), 1, most=MOST_RANK),
        alpha=number("lora_alpha", stated.get("lora_alpha", 8), 0, 1e6),
        use_rslora=rslora,
        ranks={
            name: whole("rank_pattern", r, 1, most=MOST_RANK) for name, r in _by_name(stated, "rank_pattern")
        },
        alphas={name: number("alpha_pattern", a, 0, 1e6) for name, a in _by_name(stated, "alpha_pattern")},
    )


def write_adapter_config(
    folder: Path,
    how: LoraConfig,
    *,
    targets: Sequence[str],
    saved: Sequence[str],
    base: str | None,
    architecture: str,
) -> None:
    """The config by which peft finds the layers that an adapter changes, each by its whole name."""
    fields = {
        "peft_type": "LORA",
        "task_type": KINDS.get(architecture),
        "base_model_name_or_path": base,
        "r": how.r,
        "lora_alpha": how.lora_alpha,
        "lora_dropout": how.lora_dropout,
        "use_rslora": how.use_rslora,
        "target_modules": sorted(targets),
        "modules_to_save": sorted(saved) or None,
        "bias": "none",
        "fan_in_fan_out": False,
        "inference_mode": True,
        "init_lora_weights": True,
    }
    (folder / ADAPTER_CONFIG).write_text(as_json(dict(sorted(fields.items()))), encoding="utf-8")


def _by_name(stated: Mapping[str, Any], field: str) -> list[tuple[str, Any]]:
    """Numbers by the ends of names; peft takes patterns, which could run for ever."""
    table = stated.get(field) or {}
    if not isinstance(table, dict) or len(table) > MOST_NAMES:
        raise bad(field, "numbers by names of modules", type(table).__name__)
    for name in table:
        if not _NAME.fullmatch(name):
            raise bad(field, "numbers by plain names of modules", name[:200])
    return list(table.items())


def _own(table: Mapping[str, float], name: str, usual: float) -> float:
    """What a table says of a module, by its name or an end of it; the first that fits counts."""
    return next((own for end, own in table.items() if name == end or name.endswith(f".{end}")), usual)


def _shown(value: object) -> str:
    return f"{value!r:.80}"
