"""The phases of training as data: windows and texts become longer, the learning rate smaller."""

from dataclasses import dataclass, replace

from longspan.errors import bad, one_of, whole
from longspan.families.char_lm.files import LARGE, SMALL, TINY
from longspan.families.char_lm.model import CharLMConfig
from longspan.training.optimizer import AdamW
from longspan.training.schedule import Linear

MOST_WARMUP = 10_000


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of the training, which begins with the best weights of the one before.

    >>> Phase(length=2048, radius=(32, 64), lr=1e-3, batch=8, steps=500_000).schedule
    Linear(warmup=10000, end=1.0)
    """

    length: int
    "Characters of a window of the text."
    radius: tuple[int, ...]
    "How many characters each layer looks back."
    lr: float
    batch: int
    "Windows of a step."
    steps: int
    end: float = 1.0
    "What is left of the learning rate at the end; 1: it is constant after the warm-up."

    @property
    def schedule(self) -> Linear:
        """Warm-up over a tenth of the phase, at most 10,000 steps."""
        return Linear(warmup=max(1, min(round(0.1 * self.steps), MOST_WARMUP)), end=self.end)

    @property
    def batch_tokens(self) -> int:
        """Characters of a step."""
        return self.length * self.batch


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A model, the phases of its training, and how it is evaluated."""

    config: CharLMConfig
    phases: tuple[Phase, ...]
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    max_grad_norm: float = 0.25
    ema: float | None = None
    eval_length: int = 32_256
    "Characters of a window of the evaluation."
    eval_step: int = 512
    "How many of its last ones are scored."
    eval_characters: int = 5_000_000
    "How much of the validation split is read after each tenth of a phase."

    def __post_init__(self) -> None:
        for phase in self.phases:
            if len(phase.radius) != self.config.layers:
                raise bad("radius", f"one for each of the {self.config.layers} layers", len(phase.radius))
            self.optimizer(phase)  # refuses what it cannot use

    def optimizer(self, phase: Phase) -> AdamW:
        """AdamW at the rate of a phase."""
        return AdamW(lr=phase.lr, weight_decay=self.weight_decay, betas=self.betas)

    def scaled(self, factor: float) -> "Recipe":
        """The same with more or fewer steps in each phase."""
        phases = (replace(phase, steps=max(1, round(factor * phase.steps))) for phase in self.phases)
        return replace(self, phases=tuple(phases))


def doubled(config: CharLMConfig, steps: tuple[int, ...]) -> tuple[Phase, ...]:
    """The paper's phases: length and windows doubled, learning rate halved (Longformer, table 12).

    The last is as long as their memory allowed.
    """
    lengths, batches = (2048, 4096, 8192, 16_384, 23_040), (32, 32, 16, 16, 16)
    return tuple(
        Phase(
            length=length,
            radius=tuple(radius << number for radius in config.radii),
            lr=2.5e-4 / 2**number,
            batch=batch,
            steps=count,
        )
        for number, (length, batch, count) in enumerate(zip(lengths, batches, steps, strict=True))
    )


RECIPES = {
    "tiny": Recipe(
        config=TINY,
        phases=(
            Phase(length=1024, radius=TINY.radii, lr=3e-3, batch=2, steps=6400),
            Phase(
                length=2048, radius=tuple(2 * r for r in TINY.radii), lr=1.5e-3, batch=2, steps=1600, end=0.0
            ),
        ),
        weight_decay=0.1,
        betas=(0.9, 0.98),
        max_grad_norm=1.0,
        eval_characters=50_000,
    ),
    "small": Recipe(config=SMALL, phases=doubled(SMALL, (430_000, 50_000, 50_000, 35_000, 5_000))),
    "large": Recipe(config=LARGE, phases=doubled(LARGE, (350_000, 25_000, 10_000, 5_000, 5_000))),
}
"""By name: what trains in an hour on two cores, and the paper's two models."""


def recipe_named(
    name: str, *, positions: str | None = None, steps: int | None = None, lr: float | None = None
) -> Recipe:
    """A recipe, perhaps with other positions, so many steps in all, or another rate in the first phase."""
    recipe = RECIPES[one_of("config", name, RECIPES)]
    if positions is not None:
        recipe = replace(recipe, config=replace(recipe.config, position_type=positions))
    if steps is not None:
        most = whole("steps", steps, len(recipe.phases))
        recipe = recipe.scaled(most / sum(phase.steps for phase in recipe.phases))
    if lr is not None:
        factor = lr / recipe.phases[0].lr
        recipe = replace(recipe, phases=tuple(replace(one, lr=factor * one.lr) for one in recipe.phases))
    return recipe
