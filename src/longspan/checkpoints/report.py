"""What fits and what does not between the tensors of a checkpoint and those a model wants."""

import re
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class LoadReport:
    """Names that do not match; nothing in it means that everything fits.

    >>> print(LoadReport(missing=("layers.0.out.bias", "layers.1.out.bias"), unexpected=("old",)))
    missing     layers.*.out.bias (2 tensors)
    unexpected  old
    """

    missing: tuple[str, ...] = ()
    "Wanted by the model, absent from the checkpoint."
    unexpected: tuple[str, ...] = ()
    "In the checkpoint, not wanted by the model."
    mismatched: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = ()
    "Name, shape in the checkpoint, shape that the model wants."

    def __bool__(self) -> bool:
        """Whether there is anything to report."""
        return bool(self.missing or self.unexpected or self.mismatched)

    def __str__(self) -> str:
        if not self:
            return "everything fits"
        mismatched = [f"{name}: is {stored}, must be {ours}" for name, stored, ours in self.mismatched]
        lines = [f"missing     {line}" for line in _grouped(self.missing)]
        lines += [f"unexpected  {line}" for line in _grouped(self.unexpected)]
        return "\n".join(lines + [f"mismatched  {line}" for line in mismatched])


def _grouped(names: tuple[str, ...]) -> list[str]:
    """One line for all names that differ in a layer's number only."""
    groups = Counter(re.sub(r"(?<=\.)\d+(?=\.)", "*", name) for name in names)
    return [group if count == 1 else f"{group} ({count} tensors)" for group, count in groups.items()]
