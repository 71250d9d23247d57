"""Figures of methods on collections, with the intervals that chance alone would explain."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from longspan.metrics.bootstrap import Interval, interval
from longspan.shapes import FloatArray


class Row(NamedTuple):
    """The figures of one method on a collection: means over questions, and their 95 % intervals."""

    collection: str
    method: str
    figures: dict[str, float]
    seconds: float = 0.0
    intervals: Mapping[str, Interval] = MappingProxyType({})
    questions: Mapping[str, int] = MappingProxyType({})
    "How many questions each mean is over."
    published: bool = False
    "Whether the figures are quoted, not measured here."

    @property
    def header(self) -> str:
        """What stands above the rows of a table."""
        return f"{self.collection:36}" + "".join(f"{name:20}" for name in self.figures)

    def fits(self, above: "Row") -> bool:
        """Whether the header of another row tells what the figures of this one are."""
        return (
            self.collection == above.collection and [*self.figures] == [*above.figures][: len(self.figures)]
        )

    def __str__(self) -> str:
        cells = ""
        for name, value in self.figures.items():
            low, high = self.intervals.get(name, (None, None))
            cell = f"{value:.3f}" if low is None else f"{value:.3f} [{low:.2f}-{high:.2f}]"
            cells += f"{cell:20}"
        return f"{self.method:36}{cells}" + ("(published)" if self.published else f"({self.seconds:.0f} s)")

    def as_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return self._asdict() | {"intervals": dict(self.intervals), "questions": dict(self.questions)}


def row(
    collection: str, method: str, values: Mapping[str, Sequence[float] | FloatArray], seconds: float
) -> Row:
    """The row for one value of each question under each figure's name; no question, no figure."""
    arrays = {name: np.asarray(own, float) for name, own in values.items() if len(own)}
    return Row(
        collection,
        method,
        {name: float(array.mean()) for name, array in arrays.items()},
        seconds,
        {name: interval(array) for name, array in arrays.items()},
        {name: len(array) for name, array in arrays.items()},
    )
