"""Train a language model of bytes, phase after phase; a run that was stopped goes on."""

import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from torch import nn

from longspan.checkpoints.save import CONFIG, save_model
from longspan.errors import bad, number, one_of, refused, whole
from longspan.families.char_lm.model import CharLMConfig, new_model, set_windows
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import as_json, locked, write_text
from longspan.formats.files import read_json
from longspan.recipes.card import page, this_command, training_rows
from longspan.recipes.char_lm.bits import bits_of
from longspan.recipes.char_lm.phases import Phase, Recipe
from longspan.recipes.char_lm.texts import Bytes, alphabet_of, open_splits
from longspan.recipes.char_lm.windows import Windows, next_byte_loss
from longspan.training.checkpoint import Saving
from longspan.training.config import DTYPES, ON_NAN, TrainingOptions
from longspan.training.evaluation import Evaluation
from longspan.training.loop import train
from longspan.training.ranks import Ranks, connected
from longspan.training.report import Report
from longspan.training.step import drawing

FILE, CARD = "recipe.json", "README.md"
METRIC = "bits_per_character"
VOCABULARIES = ("bytes", "data")
ROOM = 0.95
"""What training and evaluations may take of the minutes; the rest is for optimizer and checkpoints."""
TRIED = 3
"""Steps by which the time of a phase is measured."""
EVERY = 0.1
FREE = ("micro_tokens", "gradient_checkpointing")
"""Settings that another machine may need otherwise."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run is told beside its recipe."""

    seed: int = 0
    memory: int = 0
    "Characters before each window that are read, but not learnt from (Transformer-XL's memory)."
    minutes: float | None = None
    "How long it may take; None: as many steps as the recipe has."
    vocabulary: str = "bytes"
    '"bytes": all 256; "data": those that the training split holds.'
    micro_tokens: int = 16_384
    "Characters that are computed at once, which is what memory depends on."
    gradient_checkpointing: bool = False
    dtype: str = "float32"
    on_nan: str = "stop"

    def __post_init__(self) -> None:
        whole("seed", self.seed, 0)
        whole("memory", self.memory, 0)
        for name, known in (("vocabulary", VOCABULARIES), ("dtype", DTYPES), ("on_nan", ON_NAN)):
            one_of(name, getattr(self, name), known)
        if self.minutes is not None:
            number("minutes", self.minutes, 1e-3, 1e6)


def train_char_lm(
    recipe: Recipe,
    data: Path,
    out: Path,
    settings: Settings | None = None,
    *,
    saving: Saving | None = None,
    fsdp: bool = False,
    tensorboard: bool = False,
    progress: bool | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> tuple[TaskModel, list[Report]]:
    """The trained model, which is saved in `out`, and a report of each phase.

    Called again it goes on where it was; phases that are done only give their weights.
    """
    settings, out = settings or Settings(), out.expanduser()
    text, valid = open_splits(data, "train", "valid")
    config = with_vocabulary(recipe.config, text, settings.vocabulary)
    with drawing(settings.seed):
        model = new_model(config)
    sources = [_windows(text, config, phase, settings) for phase in recipe.phases]
    reports = list[Report]()
    how: dict[str, Any] = {"saving": saving, "fsdp": fsdp, "tensorboard": tensorboard, "progress": progress}
    with connected():
        first = Ranks.of(model).first
        recipe = _settled(replace(recipe, config=config), settings, text, model, out)
        evaluation = Evaluation(run=_evaluation(recipe, valid), every=EVERY, metric=METRIC)
        for place, (phase, windows) in enumerate(zip(recipe.phases, sources, strict=True), 1):
            if first:
                tell(f"phase {place} of {len(recipe.phases)}: windows of {phase.length:,} characters")
            set_windows(model, phase.radius)
            how["out"] = _phase(out, place)
            options = _options(recipe, phase, settings.seed + place, settings)
            reports.append(train(model, windows, next_byte_loss, evaluation=evaluation, **how, **options))
            if first:
                tell(str(reports[-1]))
                if not (_phase(out, place + 1) / "report.json").is_file():  # else the later model stays
                    save_model(model, out)
                    write_text(out / CARD, _card(model, data, out, reports))
    return model.eval(), reports


def _phase(out: Path, place: int) -> Path:
    """The folder of a phase, counted from 1."""
    return out / f"phase-{place}"


def with_vocabulary(config: CharLMConfig, text: Bytes, vocabulary: str) -> CharLMConfig:
    """The config for all bytes, or for those of a text."""
    if vocabulary == "bytes":
        return config
    known = alphabet_of(text)
    return replace(config, vocab_size=len(known), alphabet=known)


def _windows(text: Bytes, config: CharLMConfig, phase: Phase, settings: Settings) -> Windows:
    return Windows(text, config, phase.length, settings.seed, settings.memory)


def _evaluation(recipe: Recipe, valid: Bytes) -> Callable[[nn.Module], dict[str, float]]:
    """Bits per character of the beginning of the validation split."""
    text, length, step = valid[: recipe.eval_characters], recipe.eval_length, recipe.eval_step

    def run(model: nn.Module) -> dict[str, float]:
        return {METRIC: bits_of(cast(TaskModel, model), text, length=length, step=step).per_character}

    return run


def _options(recipe: Recipe, phase: Phase, seed: int, settings: Settings) -> TrainingOptions:
    return {
        "steps": phase.steps,
        "batch_tokens": phase.batch_tokens,
        "micro_tokens": settings.micro_tokens,
        "optimizer": recipe.optimizer(phase),
        "schedule": phase.schedule,
        "max_grad_norm": recipe.max_grad_norm,
        "ema": recipe.ema,
        "gradient_checkpointing": settings.gradient_checkpointing,
        "dtype": settings.dtype,
        "on_nan": settings.on_nan,
        "seed": seed,
    }


def _card(model: TaskModel, data: Path, out: Path, reports: list[Report]) -> str:
    about = "A language model of bytes with causal windows that grow with the layer (Longformer, section 4)."
    rows = [("parameters", f"{model.num_parameters():,}"), ("trained on", data.name)]
    for phase, report in enumerate(reports, 1):
        rows += [(f"phase {phase}: {label}", text) for label, text in training_rows(report)]
    use = "console", 'longspan sample this-folder --prompt "The "'
    return page(out.name, about, rows, tag="text-generation", command=this_command(), read_by=use)


def _settled(recipe: Recipe, settings: Settings, text: Bytes, model: TaskModel, out: Path) -> Recipe:
    """The recipe with as many steps as there is time for: measured once, then kept in a file.

    A run in the same folder must be the same run.
    """
    told = {name: value for name, value in asdict(settings).items() if name not in FREE}
    asked = _plain({"recipe": asdict(recipe), "settings": told, "data": _fingerprint(text)})
    group, path = Ranks.of(model), out / FILE
    if not path.is_file() and (out / CONFIG).exists():
        raise bad("out", "a new folder, or that of a run", str(out), "There is a model in it.")
    if group.first:
        out.mkdir(parents=True, exist_ok=True)
        with locked(out, "is being trained in by another process"):
            if not path.is_file():
                write_text(path, as_json({**asked, "steps": _counts(recipe, settings, text, model)}))
    group.wait()
    known = read_json(path)
    if wrong := [name for name in asked if known.get(name) != asked[name]]:
        what = f"the folder of a run with the same {' and '.join(wrong)}"
        raise bad("out", what, str(out), "Give the same options to go on, or another folder.")
    match known.get("steps"):
        case [*steps] if len(steps) == len(recipe.phases):
            phases = zip(recipe.phases, steps, strict=True)
            return replace(
                recipe, phases=tuple(replace(one, steps=whole("steps", n, 1)) for one, n in phases)
            )
    raise refused(path, "it does not say how many steps each phase has")


def _counts(recipe: Recipe, settings: Settings, text: Bytes, model: TaskModel) -> list[int]:
    """The steps of each phase, by the time there is."""
    if settings.minutes is None:
        return [phase.steps for phase in recipe.phases]
    seconds, left = 0.0, 60 * settings.minutes * ROOM
    for phase in recipe.phases:
        set_windows(model, phase.radius)
        took = _seconds(model, phase, _windows(text, recipe.config, phase, settings))
        seconds += phase.steps * took
        # an evaluation takes a third of the time, and there are two more than tenths
        left -= (1 / EVERY + 2) * took / 3 * recipe.eval_characters / phase.batch_tokens
    factor = max(left, 0.1 * 60 * settings.minutes) / seconds
    return [phase.steps for phase in recipe.scaled(factor).phases]


def _seconds(model: TaskModel, phase: Phase, windows: Windows) -> float:
    """The time of a step, without the optimizer's share."""
    model.train()
    times = []
    for first in range(TRIED):
        began = time.perf_counter()
        next_byte_loss(model, windows.batch(np.arange(phase.batch) + first, 0)).total.backward()
        times.append(time.perf_counter() - began)
        model.zero_grad()
    return min(times)


def _fingerprint(text: Bytes) -> list[int]:
    """What tells one text from another: its size, and a sum over a thousand of its bytes in order."""
    sample = text[:: max(1, len(text) // 1000)]
    return [len(text), zlib.crc32(sample.tobytes())]


def _plain(value: Any) -> Any:
    """As JSON gives it back."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value
