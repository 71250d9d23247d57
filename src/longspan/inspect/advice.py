"""What a cost report suggests, in sentences; none where nothing is to be gained."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from longspan.inspect.stack import Stack
from longspan.inspect.subject import Subject

if TYPE_CHECKING:
    from longspan.inspect.report import CostReport

NEAR = 0.9
"""Patterns that compute more than this share of all pairs save nothing worth having."""
LARGE = 0.7
"""What takes more than this share of the time is worth a word."""
_LENGTHS: tuple[int, ...] = tuple(1 << power for power in range(6, 14))


def advice(report: "CostReport") -> Iterator[str]:
    """Sentences about this model at this length; patterns are given none."""
    config, length = report.subject.config, int(report.layout.lengths.max())
    if isinstance(config, Stack):
        return
    if length > config.longest:
        yield (
            f"The model reads {config.longest:,} tokens at once: this is what more would cost. "
            "`longspan lengthen` makes a model that reads them."
        )
    share = {kind: seconds / report.total if report.total else 0 for kind, seconds in report.seconds.items()}
    if report.computed > NEAR * report.dense:
        half = halving(report.subject)
        if half is not None and half > length:
            yield (
                f"At {length:,} tokens full attention costs as little; "
                f"from about {half:,} on the pattern computes less than half of its pairs."
            )
        elif share["attention"] > 1 - LARGE:
            yield (
                "Every token sees every other, so the time grows with the square of the length; "
                "`longspan lengthen` gives it a window."
            )
    elif share["linear"] > LARGE:
        rest = share["attention"]
        yield f"Linear layers dominate: a sparser pattern can save {rest:.0%} at most, precision='int8' more."
    marks = config.global_tokens == "by task" and config.global_units is None
    alone = marks and not report.layout.marked_rows.size
    if alone and report.receptive_field.complete is None:
        yield "No token ever knows of the whole document; with a global token (marked) all do in two layers."


def halving(subject: Subject) -> int | None:
    """The least power of two at which the model computes less than half of all pairs; None: none."""
    heads = subject.config.heads
    for length in _LENGTHS:
        every = [call for layer in subject.config.attention(subject.layout(length)) for call in layer]
        computed = sum(call.plan(heads).pairs_computed for call in every)
        if computed < 0.5 * subject.config.layers * heads * length**2:
            return length
    return None
