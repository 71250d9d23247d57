"""Pretraining of masked language models: from nothing, or of a model that was made longer."""

import os
import time
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from longspan.checkpoints.save import CONFIG, is_reader_file, write_model
from longspan.corpus.examples import Examples
from longspan.corpus.store import Corpus
from longspan.errors import bad, number, whole
from longspan.formats.atomic import as_json, replaced_files, write_text
from longspan.formats.files import read_json
from longspan.recipes.cpc import ContrastiveExamples, contrastive_loss
from longspan.recipes.masking import Masking
from longspan.recipes.mlm import MaskedExamples, Vocabulary, evaluate_masked, masked_loss
from longspan.recipes.pretrain_card import card
from longspan.recipes.start import Start, mirrors, train_positions_only, unused
from longspan.training.config import TrainingOptions
from longspan.training.evaluation import Evaluation
from longspan.training.log import read_log
from longspan.training.loop import train
from longspan.training.optimizer import AdamW
from longspan.training.order import Order
from longspan.training.report import Report
from longspan.training.schedule import Linear, Polynomial, Schedule
from longspan.training.step import drawing

RUN, SETTINGS = "run", "pretrain.json"
USUAL = 4096
"""Tokens of an example, for models that read more."""
FREE = ("micro_tokens", "gradient_checkpointing")
EVALUATIONS = 10
RESERVE = 0.9
"""Of the time that is asked for, what steps and evaluations are planned to take."""


@dataclass(frozen=True, kw_only=True)
class PretrainConfig:
    """Settings of a run; what is not given suits the model."""

    steps: int | None = None
    "Updates of the weights; or"
    epochs: int | None = None
    "how often every example is seen; or"
    minutes: float | None = None
    "how long it may take, which becomes a number of steps by a trial."
    length: int | None = None
    "Tokens of an example; None: what the model reads, at most 4,096."
    packing: str = "documents"
    '"documents", or "joined": full examples across documents.'
    masking: Masking = field(default_factory=Masking)
    frozen: bool = False
    "Only positions are trained."
    cpc: bool = False
    "Sentences are predicted, too, by models with a stream of global tokens."
    dev: float = 0.05
    "The share of documents that is evaluated on."
    dev_tokens: int = 100_000
    "Tokens of an evaluation, at most."
    lr: float | None = None
    "None: 5e-4 for a new model, else 3e-5."
    batch_tokens: int = 32_768
    micro_tokens: int = 8192
    gradient_checkpointing: bool = False
    dtype: str = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        given = [name for name in ("steps", "epochs", "minutes") if getattr(self, name) is not None]
        if len(given) != 1:
            raise bad("steps", "given, or epochs, or minutes, and only one of them", given)
        if self.minutes is not None:
            number("minutes", self.minutes, 0.0, 1e7)
        whole("dev_tokens", self.dev_tokens, 1)


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


@dataclass(frozen=True, eq=False)
class Pretraining:
    """A model, a corpus and settings, before anything is trained."""

    start: Start
    corpus: Corpus
    config: PretrainConfig
    vocabulary: Vocabulary = field(init=False)

    def __post_init__(self) -> None:
        self.corpus.check(self.start.tokenizer)
        object.__setattr__(self, "vocabulary", Vocabulary.of(self.start.tokenizer))
        longest = self.start.model.longest
        if whole("length", self.length, 1) > longest:
            repair = "Lengthen the model: longspan lengthen."
            raise bad("length", f"at most {longest}, as many tokens as the model reads", self.length, repair)

    @property
    def length(self) -> int:
        """Tokens of an example."""
        return min(self.start.model.longest, USUAL) if self.config.length is None else self.config.length

    @cached_property
    def splits(self) -> tuple[MaskedExamples, MaskedExamples | None]:
        """What is trained on, and what is evaluated on if there is anything."""
        training, dev = self.corpus.split(self.config.dev)
        return self._masked(training), self._masked(dev) if dev.size else None

    def _masked(self, documents: Any) -> MaskedExamples:
        frame, packing = self.vocabulary.frame, self.config.packing
        examples = Examples(self.corpus, documents, frame, self.length, packing)
        units = self.start.model.config.global_units
        return MaskedExamples(examples, self.vocabulary, self.config.masking, self.config.seed, units)

    def settings(self) -> dict[str, Any]:
        """What a run that goes on must have in common with the one before."""
        corpus = {"tokens": self.corpus.tokens, "tokenizer": self.corpus.fingerprint}
        return {**asdict(self.config), "length": self.length, "source": self.start.source, "corpus": corpus}

    def sample(self) -> str:
        """The first words that are trained on, as the model sees them."""
        ids = self.splits[0].masked(0, 0).ids[:40]
        return self.start.tokenizer.decode(ids)

    def __str__(self) -> str:
        data, dev = self.splits
        order = Order(data.lengths, batch_tokens=self.config.batch_tokens, seed=self.config.seed)
        model, tokens = self.start.model, int(data.lengths.sum())
        held = "none" if dev is None else f"{len(dev.lengths):,}"
        amount = next(
            f"{getattr(self.config, name):g} {name}"
            for name in ("steps", "epochs", "minutes")
            if getattr(self.config, name) is not None
        )
        return "\n".join(
            [
                f"model     {self.start.source}, {model.num_parameters():,} weights"
                + (", only positions are trained" if self.config.frozen else ""),
                f"corpus    {len(self.corpus):,} documents, {self.corpus.tokens:,} tokens",
                f"examples  {len(data.lengths):,} of at most {self.length:,} tokens, {tokens:,} in all",
                f"held out  {held} examples",
                f"epoch     {order.count_steps(1):,} steps of at most {self.config.batch_tokens:,} tokens",
                f"training  {amount}",
                f"sample    {self.sample()!r}",
            ]
        )


def pretrain(
    start: Start,
    corpus: Corpus,
    out: str | Path,
    config: PretrainConfig,
    *,
    command: str = "",
    progress: bool | None = None,
) -> PretrainReport:
    """Train a masked language model on a corpus, and write it to the folder `out`, beside its run.

    Called again with the same settings it goes on where it was, however it was stopped. `command` is what the
    model card says that it was made by.
    """
    plan, place = Pretraining(start, corpus, config), Path(out).expanduser().absolute()
    _claim(place, plan)
    model, (data, dev) = start.model, plan.splits
    if config.frozen:
        train_positions_only(model)
    copies = mirrors(model)
    for parameter in unused(model, data.batch(np.arange(1), 0)):
        parameter.requires_grad_(False)
    source, loss = (ContrastiveExamples(data), contrastive_loss) if config.cpc else (data, masked_loss)
    evaluation = None
    if dev is not None:
        measure = evaluate_masked(dev, most_tokens=config.dev_tokens, micro_tokens=config.micro_tokens)
        evaluation = Evaluation(run=measure, every=1 / EVALUATIONS)
    options = _options(plan, _steps(plan, place))
    report = train(model, source, loss, out=place / RUN, evaluation=evaluation, progress=progress, **options)  # type: ignore[arg-type]
    if not config.frozen:
        for part in copies:  # global tokens begin as others do, as they did before (Longformer, section 5)
            part.copy_local_to_global()
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    found = PretrainReport(folder=place, before=_before(place), after=report.metrics, training=report)
    if int(os.environ.get("RANK", "0")) == 0:
        _save(plan, found, command)
    return found


def _claim(place: Path, plan: Pretraining) -> None:
    """Note the settings in a new folder; one with other settings, or another model, is refused."""
    here, known = plan.settings(), place / SETTINGS
    if known.is_file():
        before = read_json(known)
        for name, value in _plain(here).items():
            if name not in FREE and before.get(name) != value:
                repair = "Use the same settings to go on, or another folder."
                raise bad("out", f"that of a run whose `{name}` is {value!r}", before.get(name), repair)
        return
    if (place / CONFIG).exists():
        raise bad("out", "a new folder, or that of a run", str(place), "There is a model in it.")
    place.mkdir(parents=True, exist_ok=True)
    write_text(known, as_json(_plain(here)))


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}


def _options(plan: Pretraining, steps: int | None) -> TrainingOptions:
    config, new = plan.config, plan.start.is_new
    lr = config.lr if config.lr is not None else 5e-4 if new else 3e-5
    schedule: Schedule = Linear(warmup=0.06) if new else Polynomial(warmup=0.06)
    decay = 0.0 if config.frozen else 0.01  # which would shrink positions that no example has
    return {
        "steps": steps,
        "epochs": config.epochs,
        "batch_tokens": config.batch_tokens,
        "micro_tokens": config.micro_tokens,
        "optimizer": AdamW(lr=lr, weight_decay=decay, betas=(0.9, 0.98), eps=1e-6),
        "schedule": schedule,
        "gradient_checkpointing": config.gradient_checkpointing,
        "dtype": config.dtype,
        "seed": config.seed,
    }


def _steps(plan: Pretraining, place: Path) -> int | None:
    """Steps that fit into the minutes that are asked for, by the time of a trial; noted, to go on with."""
    config, known = plan.config, place / "steps.json"
    if config.minutes is None:
        return config.steps
    if known.is_file():
        return whole("steps", read_json(known).get("steps"), 1)
    data, dev = plan.splits
    lengths = data.lengths
    chosen = np.argsort(-lengths, kind="stable")[: max(1, config.micro_tokens // int(lengths.max()))]
    model = plan.start.model.train()
    seconds = float("inf")
    for _ in range(2):
        began = time.monotonic()
        with drawing(config.seed):
            masked_loss(model, data.batch(chosen, 0)).total.backward()
        seconds = min(seconds, time.monotonic() - began)
        model.zero_grad()
    by_token = seconds / int(lengths[chosen].sum())
    read = 0 if dev is None else min(config.dev_tokens, int(dev.lengths.sum()))
    evaluating = (EVALUATIONS + 1) * read * by_token / 3  # a forward pass is a third of a step
    left = RESERVE * 60 * config.minutes - evaluating
    steps = max(1, int(left / (by_token * min(config.batch_tokens, int(lengths.sum())))))
    write_text(known, as_json({"steps": steps}))
    return steps


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


def _save(plan: Pretraining, report: PretrainReport, command: str) -> None:
    """The model, its tokenizer and a card, all of them or none."""
    start, model = plan.start, plan.start.model
    start.tokenizer.limit = model.longest
    with replaced_files(report.folder, owns=is_reader_file, last=CONFIG) as fresh:
        write_model(model, fresh, extra=start.config)
        start.tokenizer.write(fresh, token_types=model.config.reads_token_types(model.architecture))
        (fresh / "README.md").write_text(card(plan.settings(), report.to_dict(), command), encoding="utf-8")
