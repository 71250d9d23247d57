"""How fast rotary angles grow, and how they are scaled for documents longer than those of pretraining."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from longspan.errors import bad, number, one_of, whole

KINDS = ("default", "linear", "ntk", "dynamic", "yarn", "llama3")


@dataclass(frozen=True, kw_only=True)
class RopeParameters:
    """The angles of a layer, in transformers' words.

    "linear" divides all frequencies by `factor`; "ntk" raises the base instead, and "dynamic" does so by a
    document's own length, once it exceeds the original one; "yarn" and "llama3" divide slow frequencies only.
    """

    rope_theta: float = 10_000.0
    "The base: the slowest angle turns once in about 2 pi times so many tokens."
    rope_type: str = "default"
    factor: float = 1.0
    "How many times longer documents are than those of pretraining."
    original_max_position_embeddings: int = 0
    "Tokens of the longest document of pretraining; 0 where no scaling asks for it."
    attention_factor: float | None = None
    "What queries and keys are multiplied by (yarn); None: as the paper has it."
    beta_fast: float = 32.0
    "Angles that turn so often within the original length are not scaled (yarn)."
    beta_slow: float = 1.0
    "Those that turn less often than this are scaled by all of `factor` (yarn)."
    truncate: bool = True
    "Whether the range between the two is widened to whole numbers (yarn)."
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        one_of("rope_type", self.rope_type, KINDS)
        number("rope_theta", self.rope_theta, 1.0, 1e12)
        number("factor", self.factor, 1.0, 1e6)
        for name in ("beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor"):
            number(name, getattr(self, name), 1e-6, 1e6)
        if self.attention_factor is not None:
            number("attention_factor", self.attention_factor, 1e-6, 1e6)
        least = 1 if self.rope_type in ("dynamic", "yarn", "llama3") else 0
        whole("original_max_position_embeddings", self.original_max_position_embeddings, least)
        if self.high_freq_factor <= self.low_freq_factor:
            raise bad(
                "high_freq_factor", f"above low_freq_factor, {self.low_freq_factor}", self.high_freq_factor
            )

    @property
    def scaling(self) -> float:
        """What cosines and sines are multiplied by."""
        if self.rope_type != "yarn":
            return 1.0
        usual = 0.1 * math.log(self.factor) + 1.0 if self.factor > 1 else 1.0
        return usual if self.attention_factor is None else self.attention_factor

    def frequencies(self, size: int, length: int = 0) -> Tensor:
        """The angle by which each pair of a head of `size` turns from a token to the next, (size / 2,).

        `length` is that of the document, which "dynamic" scaling asks for.

        >>> RopeParameters().frequencies(4)
        tensor([1.0000, 0.0100])
        """
        return _FREQUENCIES[self.rope_type](self, size, length)


def _plain(base: float | Tensor, size: int) -> Tensor:
    # In float32 and in this order, as the models were trained.
    powers: Tensor = base ** (torch.arange(0, size, 2, dtype=torch.int64, device="cpu").float() / size)
    return 1.0 / powers


def _linear(rope: RopeParameters, size: int, length: int) -> Tensor:
    return _plain(rope.rope_theta, size) / rope.factor


def _ntk(rope: RopeParameters, size: int, length: int) -> Tensor:
    shrink: float = rope.factor ** (2 / size)
    return _plain(rope.rope_theta * rope.factor, size) / shrink


def _dynamic(rope: RopeParameters, size: int, length: int) -> Tensor:
    original, factor = rope.original_max_position_embeddings, rope.factor
    if length <= original or size <= 2:
        return _plain(rope.rope_theta, size)
    # In float32, as transformers has it: the angles of far positions depend on the last bits.
    longer = factor * torch.tensor(length, device="cpu") / original - (factor - 1)
    return _plain(rope.rope_theta * longer ** (size / (size - 2)), size)


def _yarn(rope: RopeParameters, size: int, length: int) -> Tensor:
    base, original = rope.rope_theta, rope.original_max_position_embeddings

    def pair(turns: float) -> float:
        """The pair that turns so often within the original length."""
        return size * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair(rope.beta_fast), pair(rope.beta_slow)
    if rope.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, size - 1)
    ramp = (torch.arange(size // 2, dtype=torch.float32, device="cpu") - low) / (
        high - low if high != low else 0.001
    )
    scaled = ramp.clamp(0, 1)
    powers = base ** (torch.arange(0, size, 2, device="cpu").float() / size)
    return (1.0 / (rope.factor * powers)) * scaled + (1.0 / powers) * (1 - scaled)


def _llama3(rope: RopeParameters, size: int, length: int) -> Tensor:
    frequency, original = _plain(rope.rope_theta, size), rope.original_max_position_embeddings
    low, high = rope.low_freq_factor, rope.high_freq_factor
    wavelength = 2 * math.pi / frequency
    smooth = (original / wavelength - low) / (high - low)
    between = (1 - smooth) * frequency / rope.factor + smooth * frequency
    scaled = torch.where(wavelength > original / low, frequency / rope.factor, frequency)
    middle = (wavelength >= original / high) & (wavelength <= original / low)
    return torch.where(middle, between, scaled)


_FREQUENCIES: dict[str, Callable[[RopeParameters, int, int], Tensor]] = {
    "default": lambda rope, size, length: _plain(rope.rope_theta, size),
    "linear": _linear,
    "ntk": _ntk,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "llama3": _llama3,
}
