"""What shapes the weights of a run: the same settings, data and model give the same weights, bit for bit."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import TypedDict

from longspan.errors import bad, no_option, one_of, whole
from longspan.training.optimizer import AdamW, Optimizer
from longspan.training.schedule import Linear, Schedule

DTYPES = ("float32", "bfloat16")
ON_NAN = ("stop", "skip", "rollback")


class TrainingOptions(TypedDict, total=False):
    """The fields of TrainingConfig, as keyword arguments."""

    steps: int | None
    epochs: int | None
    batch_size: int | None
    batch_tokens: int | None
    micro_tokens: int
    optimizer: Optimizer
    schedule: Schedule
    max_grad_norm: float | None
    layer_decay: float
    rates: Mapping[str, float] | None
    ema: float | None
    dtype: str
    gradient_checkpointing: bool
    on_nan: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """Settings of a run.

    >>> TrainingConfig(epochs=3, batch_size=32).schedule
    Linear(warmup=0.1, end=0.0)
    """

    steps: int | None = None
    "Updates of the weights; or"
    epochs: int | None = None
    "how often every example is seen."
    batch_size: int | None = None
    "Examples of an update, at most; and, or,"
    batch_tokens: int | None = None
    "its tokens, at most."
    micro_tokens: int = 8192
    "Tokens that are computed at once, which is what memory depends on; a longer example goes alone."
    optimizer: Optimizer = field(default_factory=AdamW)
    schedule: Schedule = field(default_factory=Linear)
    max_grad_norm: float | None = 1.0
    "Longer gradients are made so long; None: none are."
    layer_decay: float = 1.0
    "The learning rate of a layer as a share of the one above it."
    rates: Mapping[str, float] | None = None
    "Other learning rates, by patterns of parameter names."
    ema: float | None = None
    "How much of their average weights keep in each update; the average is evaluated and saved. None: none."
    dtype: str = "float32"
    "Of the weights in forward and backward passes; they are changed in float32."
    gradient_checkpointing: bool = False
    "Compute layers again in the backward pass, to keep only their inputs."
    on_nan: str = "stop"
    """A step whose loss is no number: "stop" and name its examples, "skip" it, or "rollback" to the last
    checkpoint and leave it out."""
    seed: int = 0

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            given = "neither" if self.steps is None else "both"
            raise bad("steps", "given, or epochs, but not both", given)
        for name in ("steps", "epochs"):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), 1)
        whole("seed", self.seed, 0)
        one_of("dtype", self.dtype, DTYPES)
        one_of("on_nan", self.on_nan, ON_NAN)
        if self.max_grad_norm is not None and not self.max_grad_norm > 0:
            raise bad("max_grad_norm", "more than 0", self.max_grad_norm, "Use None for no limit.")
        if self.ema is not None and not 0 < self.ema < 1:
            raise bad("ema", "between 0 and 1", self.ema, "Use None for no average.")

    def to_dict(self) -> dict[str, object]:
        """As JSON has it; two configs with the same one train alike."""
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("optimizer", "schedule"):
            plain[name] = {"name": type(plain[name]).__name__, **asdict(plain[name])}
        return plain | {"rates": None if self.rates is None else dict(self.rates)}


def config_of(options: TrainingOptions) -> TrainingConfig:
    """The settings of some keyword arguments."""
    known = [field.name for field in fields(TrainingConfig)]
    for name in options:
        if name not in known:
            raise no_option(name, known)
    return TrainingConfig(**options)
