"""Counts and numbers as people read them."""

from collections.abc import Sequence
from itertools import groupby


def plural(count: int, noun: str) -> str:
    """
    >>> plural(1, "head"), plural(4096, "row")
    ('1 head', '4,096 rows')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def numbered(noun: str, numbers: Sequence[int]) -> str:
    """Sorted numbers with their noun, consecutive ones as a range.

    >>> numbered("layer", range(12)), numbered("head", [3]), numbered("layer", [0, 1, 2, 7, 9, 10])
    ('layers 0 to 11', 'head 3', 'layers 0 to 2, 7 and 9 to 10')
    """
    ranges = [
        [n for _, n in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
    ]
    *items, last = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in ranges]
    return f"{noun}{'s' * (len(numbers) > 1)} {', '.join(items)}{' and ' * bool(items)}{last}"
