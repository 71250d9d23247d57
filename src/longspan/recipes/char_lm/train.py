"""Train a language model of bytes, phase after phase; a run that was stopped goes on."""

import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from longspan.checkpoints.save import save_model
from longspan.errors import bad, refused
from longspan.families.char_lm.model import CharLMConfig, new_model, set_windows
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import as_json, write_text
from longspan.formats.files import read_json
from longspan.recipes.char_lm.bits import bits_of
from longspan.recipes.char_lm.phases import Phase, Recipe
from longspan.recipes.char_lm.texts import Bytes, alphabet_of, open_split
from longspan.recipes.char_lm.windows import Windows, next_byte_loss
from longspan.training.evaluation import Evaluation
from longspan.training.loop import train
from longspan.training.ranks import Ranks, connected
from longspan.training.report import Report

FILE = "recipe.json"
METRIC = "bits_per_character"
ROOM = 0.95
"""What training and evaluations may take of the minutes; the rest is for optimizer and checkpoints."""
TRIED = 3
"""Steps by which the time of a phase is measured."""
EVERY = 0.1


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
    gradient_checkpointing: bool = False


def train_char_lm(
    recipe: Recipe,
    data: Path,
    out: Path,
    settings: Settings | None = None,
    *,
    progress: bool | None = None,
    tell: Callable[[str], object] = lambda text: None,
) -> tuple[TaskModel, list[Report]]:
    """The trained model, which is saved in `out`, and a report of each phase.

    Called again it goes on where it was; phases that are done only give their weights.
    """
    settings = settings or Settings()
    text, valid = open_split(data, "train"), open_split(data, "valid")
    config = with_vocabulary(recipe.config, text, settings.vocabulary)
    torch.manual_seed(settings.seed)
    model = new_model(config)
    sources = [_windows(text, config, phase, settings) for phase in recipe.phases]
    with connected():
        recipe = _settled(replace(recipe, config=config), settings, text, model, out)
        reports = []
        for number, (phase, windows) in enumerate(zip(recipe.phases, sources, strict=True), 1):
            tell(f"phase {number} of {len(recipe.phases)}: windows of {phase.length:,} characters")
            set_windows(model, phase.radius)
            reports.append(_trained(model, recipe, phase, windows, valid, settings, out, number, progress))
            if Ranks.of(model).first:
                save_model(model, out)
            tell(str(reports[-1]))
    return model.eval(), reports


def with_vocabulary(config: CharLMConfig, text: Bytes, vocabulary: str) -> CharLMConfig:
    """The config for all bytes, or for those of a text."""
    if vocabulary == "bytes":
        return config
    known = alphabet_of(text)
    return replace(config, vocab_size=len(known), alphabet=known)


def _windows(text: Bytes, config: CharLMConfig, phase: Phase, settings: Settings) -> Windows:
    return Windows(text, config, phase.length, settings.seed, settings.memory)


def _trained(
    model: TaskModel,
    recipe: Recipe,
    phase: Phase,
    windows: Windows,
    valid: Bytes,
    settings: Settings,
    out: Path,
    number: int,
    progress: bool | None,
) -> Report:
    looked_at = valid[: recipe.eval_characters]

    def evaluate(current: nn.Module) -> dict[str, float]:
        length, step = recipe.eval_length, recipe.eval_step
        return {METRIC: bits_of(cast(TaskModel, current), looked_at, length=length, step=step).per_character}

    return train(
        model,
        windows,
        next_byte_loss,
        out=out / f"phase-{number}",
        steps=phase.steps,
        batch_tokens=phase.batch_tokens,
        micro_tokens=settings.micro_tokens,
        optimizer=recipe.optimizer(phase),
        schedule=phase.schedule,
        max_grad_norm=recipe.max_grad_norm,
        ema=recipe.ema,
        gradient_checkpointing=settings.gradient_checkpointing,
        evaluation=Evaluation(run=evaluate, every=EVERY, metric=METRIC),
        seed=settings.seed + number,
        progress=progress,
    )


def _settled(recipe: Recipe, settings: Settings, text: Bytes, model: TaskModel, out: Path) -> Recipe:
    """The recipe with as many steps as there is time for: measured once, then kept in a file.

    A run in the same folder must be the same run.
    """
    asked = {"recipe": asdict(recipe), "settings": asdict(settings), "data": _fingerprint(text)}
    asked = _plain(asked)
    path = out / FILE
    if path.is_file():
        known = read_json(path)
        if wrong := [name for name in asked if known.get(name) != asked[name]]:
            what = f"the folder of a run with the same {' and '.join(wrong)}"
            raise bad("out", what, str(out), "Give the same options to go on, or another folder.")
        counts = known.get("steps")
        if not isinstance(counts, list) or len(counts) != len(recipe.phases):
            raise refused(path, "it does not say how many steps each phase has")
    else:
        counts = _counts(recipe, settings, text, model)
        counts = [
            round(count)
            for count in Ranks.of(model).sum(counts if Ranks.of(model).first else [0] * len(counts))
        ]
        if Ranks.of(model).first:
            out.mkdir(parents=True, exist_ok=True)
            write_text(path, as_json({**asked, "steps": counts}))
        Ranks.of(model).wait()
    phases = zip(recipe.phases, counts, strict=True)
    return replace(recipe, phases=tuple(replace(phase, steps=steps) for phase, steps in phases))


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
    for number in range(TRIED):
        began = time.perf_counter()
        next_byte_loss(model, windows.batch(np.arange(phase.batch) + number, 0)).total.backward()
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
