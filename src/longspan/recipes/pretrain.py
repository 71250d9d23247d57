"""Pretraining of masked language models: from nothing, or of a model that was made longer."""

import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from longspan.checkpoints.save import CONFIG, is_reader_file, write_model
from longspan.corpus.store import Corpus
from longspan.errors import bad, whole
from longspan.formats.atomic import as_json, replaced_files, write_text
from longspan.formats.files import read_json
from longspan.recipes.card import this_command
from longspan.recipes.cpc import ContrastiveExamples, contrastive_loss
from longspan.recipes.frozen import only_new_positions, unreached
from longspan.recipes.mlm import evaluate_masked, masked_loss
from longspan.recipes.pretrain_card import card
from longspan.recipes.pretrain_plan import PretrainConfig, Pretraining
from longspan.recipes.start import Start, mirrors
from longspan.shapes import IntArray
from longspan.training.checkpoint import Saving
from longspan.training.config import TrainingOptions
from longspan.training.evaluation import Evaluation
from longspan.training.log import read_log
from longspan.training.loop import train
from longspan.training.optimizer import AdamW
from longspan.training.ranks import Ranks, connected
from longspan.training.report import Report
from longspan.training.schedule import SCHEDULES
from longspan.training.source import LossFunction, Source, T
from longspan.training.step import drawing

RUN, SETTINGS = "run", "pretrain.json"
TRIED = 2048
"""Tokens by which is found what the loss depends on, or one example, if it is longer."""
FREE = ("micro_tokens", "gradient_checkpointing")
"""Settings that another machine may need otherwise."""
EVALUATIONS = 10
RESERVE = 0.9
"""Of the time that is asked for, what steps and evaluations are planned to take."""


@dataclass(frozen=True, kw_only=True)
class PretrainReport:
    """What a run has done."""

    folder: Path
    before: dict[str, float]
    "Figures on documents that are not trained on, before the first step; empty if there are none."
    after: dict[str, float]
    "The same afterwards."
    training: Report

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**vars(self), "folder": str(self.folder), "training": self.training.to_dict()}

    def __str__(self) -> str:
        figures = [f"{name:<20}{self.before[name]:.4f} -> {self.after[name]:.4f}" for name in self.before]
        return "\n".join([str(self.training), *figures, f"written to {self.folder}"])


def pretrain(
    start: Start,
    corpus: Corpus,
    out: str | Path,
    config: PretrainConfig,
    *,
    saving: Saving | None = None,
    fsdp: bool = False,
    tensorboard: bool = False,
    progress: bool | None = None,
) -> PretrainReport:
    """Train a masked language model on a corpus, and write it to the folder `out`, beside its run.

    Called again with the same settings it goes on where it was, however it was stopped.
    """
    plan, place = Pretraining(start, corpus, config), Path(out).expanduser().absolute()
    model, (data, dev) = start.model, plan.splits
    copies = mirrors(model)
    source: Source[Any] = ContrastiveExamples(data) if config.cpc else data
    loss: LossFunction[Any] = contrastive_loss if config.cpc else masked_loss
    evaluation = None
    if dev is not None:
        measure = evaluate_masked(dev, most_tokens=config.dev_tokens, micro_tokens=config.micro_tokens)
        evaluation = Evaluation(run=measure, every=1 / EVALUATIONS)
    options = _options(plan)
    how: dict[str, Any] = {"saving": saving, "fsdp": fsdp, "tensorboard": tensorboard, "progress": progress}
    with connected():
        group = Ranks.of(model)
        _claim(place, plan, group)
        with only_new_positions(model) if config.frozen else nullcontext():
            for parameter in unreached(model, source.batch(_longest(data.lengths, TRIED), 0), loss):
                parameter.requires_grad_(False)
            options["steps"] = _steps(plan, place, group, source, loss)
            report = train(model, source, loss, out=place / RUN, evaluation=evaluation, **how, **options)
        model.requires_grad_(True)
        if not config.frozen:
            # Global tokens begin as others do, as they did before (Longformer, section 5).
            for part in copies:
                part.copy_local_to_global()
        found = PretrainReport(folder=place, before=_before(place), after=report.metrics, training=report)
        if group.first:
            _save(plan, found)
    return found


def _claim(place: Path, plan: Pretraining, group: Ranks) -> None:
    """Note the settings in a new folder; one with other settings, or another model, is refused."""
    here, known = _plain(plan.settings()), place / SETTINGS
    if not known.is_file():
        if (place / CONFIG).exists():
            raise bad("out", "a new folder, or that of a run", str(place), "There is a model in it.")
        if group.first:
            place.mkdir(parents=True, exist_ok=True)
            write_text(known, as_json(here))
    group.wait()
    before = read_json(known)
    free = FREE[1:] if plan.config.cpc else FREE  # sentences are told from those of the same micro-batch
    for name, value in here.items():
        if name not in free and before.get(name) != value:
            repair = "Use the same settings to go on, or another folder."
            raise bad("out", f"that of a run whose `{name}` is {value!r}", before.get(name), repair)


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


def _options(plan: Pretraining) -> TrainingOptions:
    config, new = plan.config, plan.start.is_new
    lr = config.lr if config.lr is not None else 5e-4 if new else 3e-5
    schedule = config.schedule or ("linear" if new else "polynomial")
    decay = 0.0 if config.frozen else 0.01  # which would shrink positions that no example has
    return {
        "epochs": config.epochs,
        "batch_tokens": config.batch_tokens,
        "micro_tokens": config.micro_tokens,
        "optimizer": AdamW(lr=lr, weight_decay=decay, betas=(0.9, 0.98), eps=1e-6),
        "schedule": SCHEDULES[schedule](warmup=0.06),
        "gradient_checkpointing": config.gradient_checkpointing,
        "dtype": config.dtype,
        "on_nan": config.on_nan,
        "seed": config.seed,
    }


def _longest(lengths: IntArray, most: int) -> IntArray:
    """The longest examples, so many tokens together, but at least one."""
    return np.argsort(-lengths, kind="stable")[: max(1, most // int(lengths.max()))]


def _steps(
    plan: Pretraining, place: Path, group: Ranks, source: Source[T], loss: LossFunction[T]
) -> int | None:
    """Steps that fit into the minutes that are asked for; found once, and noted for all processes."""
    known = place / "steps.json"
    if plan.config.minutes is None:
        return plan.config.steps
    if group.first and not known.is_file():
        write_text(known, as_json({"steps": _measured(plan, source, loss, 60 * plan.config.minutes)}))
    group.wait()
    return whole("steps", read_json(known).get("steps"), 1)


def _measured(plan: Pretraining, source: Source[T], loss: LossFunction[T], seconds: float) -> int:
    """How many steps take so long, by the time of a trial."""
    config, (data, dev) = plan.config, plan.splits
    chosen = _longest(data.lengths, config.micro_tokens)
    model, took = plan.start.model.train(), float("inf")
    for _ in range(2):
        began = time.monotonic()
        with drawing(config.seed):
            loss(model, source.batch(chosen, 0)).total.backward()
        took = min(took, time.monotonic() - began)
        model.zero_grad()
    by_token = took / int(data.lengths[chosen].sum())
    read = 0 if dev is None else min(config.dev_tokens, int(dev.lengths.sum()))
    evaluating = (EVALUATIONS + 1) * read * by_token / 3  # a forward pass is a third of a step
    of_a_step = by_token * min(config.batch_tokens, int(data.lengths.sum()))
    return max(1, int((RESERVE * seconds - evaluating) / of_a_step))


def _before(place: Path) -> dict[str, float]:
    """The evaluation before the first step."""
    for record in read_log(place / RUN):
        if record["step"] == 0:
            return {
                name.removeprefix("eval/"): value
                for name, value in record.items()
                if name.startswith("eval/")
            }
    return {}


def _save(plan: Pretraining, report: PretrainReport) -> None:
    """The model, its tokenizer and a card, all of them or none."""
    start, model = plan.start, plan.start.model
    start.tokenizer.limit = model.longest
    with replaced_files(report.folder, owns=is_reader_file, last=CONFIG) as fresh:
        write_model(model, fresh, extra=start.config)
        start.tokenizer.write(fresh, token_types=model.config.reads_token_types(model.architecture))
        page = card(plan.settings(), report.to_dict(), this_command())
        (fresh / "README.md").write_text(page, encoding="utf-8")
