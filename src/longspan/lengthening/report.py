"""What `lengthen` says of its work."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote

from torch import Tensor

from longspan.families.lengthening import Option
from longspan.lengthening.self_check import Drift


@dataclass(frozen=True, kw_only=True)
class LengthenReport:
    """What was done to a model, how equal it stayed and how far it drifts."""

    source: str
    folder: Path | None
    "Where the new model was written, None if nowhere."
    task: str
    pattern: str
    short: int
    "Tokens of the longest document that the source reads."
    to: int
    "And the new model."
    positions: str
    period: int | None
    "Rows of the position table that are repeated."
    radius: tuple[int, ...] | None
    block: int | None
    copied: tuple[str, ...]
    "What of the source is in the new model."
    equal: bool
    "Whether both must compute the same on such documents; scaled angles may change all of them."
    equal_up_to: int
    "Tokens up to which both were compared."
    max_difference: float
    "On such documents, with the new positions in both, relative to the largest number."
    command: str
    "What makes the same model again, but for SOURCE and OUT."
    drift: tuple[Drift, ...]
    "The change from the source as it was, by length."
    notes: dict[str, str]
    "What else the family says of the new model, such as its global tokens or its second level."
    loads_in_transformers: bool
    why_not: str | None
    "What Hugging Face has no words for."

    def as_json(self) -> dict[str, object]:
        """All fields as JSON's types."""
        return asdict(self) | {"folder": None if self.folder is None else str(self.folder)}

    def __str__(self) -> str:
        radii = (self.radius or ())[:1] if len(set(self.radius or ())) == 1 else self.radius
        seen = "all tokens seen" if self.block is None else f"block {self.block}"
        seen = seen if radii is None else f"radius {', '.join(map(str, radii))}"
        rows = f"{self.positions}, period {self.period}" if self.period else self.positions
        lines = [
            f"source        {self.source} ({self.task}, {self.short} tokens)",
            f"made          {self.pattern}, {seen}, {self.to} tokens, positions: {rows}",
            *(f"{name:<14}{note}" for name, note in self.notes.items()),
            f"copied        {', '.join(self.copied)}",
            f"{'equal' if self.equal else 'not equal':<14}up to {self.equal_up_to} tokens: largest difference"
            f" {self.max_difference:.1e}{'' if self.equal else ', as the scaling changes all documents'}",
            *(
                f"drift         at {one.tokens} tokens: cosine {one.cosine:.4f}, hidden states differ by "
                f"{one.mean_difference:.1e}"
                for one in self.drift
            ),
            f"transformers  {'loads it' if self.why_not is None else f'has no words for {self.why_not}'}",
        ]
        return "\n".join(lines + ([] if self.folder is None else [f"written to    {self.folder}"]))


def command(
    to: int, pattern: str, positions: str, period: int | None, task: str | None, options: Mapping[str, Option]
) -> str:
    """The command line that lengthens a model so.

    >>> command(4096, "stitched", "copy", None, None, {"block": 128, "radius": (8, 16)})
    'longspan lengthen SOURCE --to 4096 --pattern stitched --set block=128 --set radius=8,16 --out OUT'
    """
    words = ["longspan lengthen SOURCE", f"--to {to}", f"--pattern {pattern}"]
    words += [f"--set {quote(f'{name}={_spelled(value)}')}" for name, value in options.items()]
    words += [f"--positions {positions}"] if positions != "copy" else []
    words += [] if period is None else [f"--period {period}"]
    words += [] if task is None else [f"--task {quote(task)}"]
    return " ".join([*words, "--out OUT"])


def _spelled(value: Option) -> str:
    if isinstance(value, Tensor):
        return "TENSOR"  # which a command line cannot give
    if isinstance(value, tuple):
        return ",".join(map(str, value)) + "," * (len(value) == 1)
    return str(value).lower() if isinstance(value, bool) else str(value)
