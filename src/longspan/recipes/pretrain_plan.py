"""What a pretraining run is going to do: its settings, and what they mean for a model and a corpus."""

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from longspan.corpus.examples import Examples
from longspan.corpus.store import Corpus
from longspan.errors import bad, number, one_of, whole
from longspan.recipes.frozen import new_positions
from longspan.recipes.masking import Masking
from longspan.recipes.mlm import MaskedExamples, Vocabulary
from longspan.recipes.start import Start
from longspan.training.config import DTYPES, ON_NAN
from longspan.training.optimizer import AdamW
from longspan.training.order import Order
from longspan.training.schedule import SCHEDULES

USUAL = 4096
"""Tokens of an example, for models that read more."""


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
    "Only new positions are trained: those behind the first copy in a table that was made longer."
    cpc: bool = False
    "Sentences are predicted, too, by models with a stream of global tokens."
    dev: float = 0.05
    "The share of documents that is evaluated on."
    dev_tokens: int = 100_000
    "Tokens of an evaluation, at most."
    lr: float | None = None
    "None: 5e-4 for a new model, else 3e-5."
    schedule: str | None = None
    'How the rate changes behind the warm-up; None: "linear" for a new model, else "polynomial".'
    batch_tokens: int = 32_768
    micro_tokens: int = 8192
    gradient_checkpointing: bool = False
    dtype: str = "float32"
    on_nan: str = "stop"
    seed: int = 0

    def __post_init__(self) -> None:
        given = [name for name in ("steps", "epochs", "minutes") if getattr(self, name) is not None]
        if len(given) != 1:
            raise bad("steps", "given, or epochs, or minutes, and only one of them", given)
        if self.minutes is not None:
            number("minutes", self.minutes, 0.0, 1e7)
        whole("dev_tokens", self.dev_tokens, 1)
        for name, known in (("dtype", DTYPES), ("on_nan", ON_NAN)):
            one_of(name, getattr(self, name), known)
        if self.lr is not None:
            AdamW(lr=self.lr)  # refuses what it cannot use
        if self.schedule is not None:
            one_of("schedule", self.schedule, SCHEDULES)


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
        if self.config.frozen and int(self.splits[0].lengths.max()) <= self.new.start:
            need = f"above {self.new.start}, where new positions begin, for some examples"
            raise bad("length", need, int(self.splits[0].lengths.max()))

    @cached_property
    def new(self) -> range:
        """The positions that are trained alone, if the rest is frozen."""
        return new_positions(self.start.model)

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

    @property
    def _trained(self) -> str:
        own = "" if self.new.start else ": its table repeats nothing, so all are new"
        return f"{self.new.start:,} to {self.new.stop - 1:,}{own}"

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
                + (f", trained: positions {self._trained}" if self.config.frozen else ""),
                f"corpus    {len(self.corpus):,} documents, {self.corpus.tokens:,} tokens",
                f"examples  {len(data.lengths):,} of at most {self.length:,} tokens, {tokens:,} in all",
                f"held out  {held} examples",
                f"epoch     {order.count_steps(1):,} steps of at most {self.config.batch_tokens:,} tokens",
                f"training  {amount}",
                f"sample    {self.sample()!r}",
            ]
        )
