"""`longspan.explain`: what a model or some patterns cost on a document of some length, and what dominates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from math import isinf
from pathlib import Path

import numpy as np
import torch

from longspan.families.attention_spec import AttentionSpec
from longspan.families.config import EncoderConfig
from longspan.inspect.advice import NEAR, advice
from longspan.inspect.cost import AttentionCost, attention_costs, dense_pairs
from longspan.inspect.dry_run import Work, dry_run
from longspan.inspect.field import ReceptiveField, receptive_field
from longspan.inspect.speed import FLOPS, Speed, measure, stated
from longspan.inspect.stack import Stack
from longspan.inspect.subject import Subject, subject
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.words import numbered, plural

_TIMED = 2048  # tokens on which attention is timed, at most
_BAR = 32
_KINDS = {"linear": "linear layers", "attention": "attention", "rest": "embeddings, norms"}


@dataclass(frozen=True, kw_only=True)
class CostReport:
    """What `explain` returns; print it, read its fields, or take `as_json()`."""

    subject: Subject
    layout: Layout
    attention: tuple[AttentionCost, ...]
    work: Work
    speed: Speed
    receptive_field: ReceptiveField
    threads: int

    @cached_property
    def useful(self) -> int:
        """Pairs that may attend, of all layers and heads."""
        return sum(len(cost.layers) * cost.useful for cost in self.attention)

    @cached_property
    def computed(self) -> int:
        """Pairs that are computed, of all layers and heads."""
        return sum(len(cost.layers) * cost.computed for cost in self.attention)

    @cached_property
    def dense(self) -> int:
        """Pairs that full attention would compute, of all layers and heads."""
        return self.subject.config.layers * self.subject.config.heads * dense_pairs(self.layout)

    @cached_property
    def flops(self) -> dict[str, int]:
        """Floating-point operations of linear layers and of attention."""
        attended = sum(len(cost.layers) * cost.flops for cost in self.attention)
        return {"linear": self.work.linear_flops, "attention": attended}

    @cached_property
    def seconds(self) -> dict[str, float]:
        """The predicted time of a forward pass, by what takes it."""
        speed, work = self.speed, self.work
        return {
            "linear": self.flops["linear"] / speed.linear / 1e9,
            "attention": self.flops["attention"] / speed.attention / 1e9,
            "rest": work.light / speed.light / 1e9 + work.activated / speed.activation / 1e9,
        }

    @property
    def total(self) -> float:
        """Seconds of a forward pass."""
        return sum(self.seconds.values())

    @property
    def full(self) -> float:
        """Seconds that it would take if every token saw every other."""
        attended = FLOPS * self.subject.config.head_size * self.dense
        return self.total - self.seconds["attention"] + attended / self.speed.attention / 1e9

    @property
    def dominates(self) -> str:
        """What takes most of the time."""
        return max(self.seconds, key=lambda kind: self.seconds[kind])

    @cached_property
    def memory(self) -> dict[str, int]:
        """Bytes in float32: weights, intermediate results, plans, the threads' scratch, and all together."""
        parts = {
            "weights": 4 * self.work.parameters,
            "activations": self.work.activation_bytes,
            "plans": sum(cost.plan_bytes for cost in self.attention),
            "scratch": self.threads * self._scratch,
        }
        return parts | {"peak": sum(parts.values())}

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What could be done better, if anything."""
        return tuple(advice(self))

    def as_json(self) -> dict[str, object]:
        """Everything as plain values; the speed of linear layers is None if there are none."""
        return {
            "model": self.subject.name,
            "family": self.subject.family,
            "length": self.layout.size,
            "marked": int(self.layout.marked_rows.size),
            "layers": self.subject.config.layers,
            "heads": self.subject.config.heads,
            "width": self.subject.config.width,
            "parameters": self.work.parameters,
            "attention": [asdict(cost) for cost in self.attention],
            "pairs": {"useful": self.useful, "computed": self.computed, "full": self.dense},
            "receptive_field": self.receptive_field.tokens.tolist(),
            "flops": self.flops,
            "memory_bytes": self.memory,
            "threads": self.threads,
            "speed": {
                "measured": self.speed.measured,
                "linear_gflops": None if isinf(self.speed.linear) else self.speed.linear,
                "attention_gflops": self.speed.attention,
            },
            "predicted_seconds": self.seconds | {"total": self.total, "full_attention": self.full},
            "dominates": self.dominates,
            "advice": list(self.advice),
        }

    def __str__(self) -> str:
        weights = f", {self.work.parameters / 1e6:.1f} M parameters" * bool(self.work.parameters)
        document = self.subject.describe(self.layout, self.receptive_field.second_stream)
        heading = f"{self.subject.name}: {self.subject.sizes}{weights}\n{document}"
        return "\n".join([heading, "", *self._table(), "", *self._costs(), "", *self._time()])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    @property
    def _scratch(self) -> int:
        return max((cost.scratch_bytes for cost in self.attention), default=0)

    @property
    def _kinds(self) -> list[str]:
        """What there is of linear layers and attention."""
        return ["linear", "attention"] if self.work.linear_flops else ["attention"]

    def _table(self) -> Iterator[str]:
        header = ("", "attention", "sees", "useful pairs", "computed", "of full", "plan", "time", "pattern")
        rows = [header, *self._rows()]
        columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
        widths = [max(map(len, column)) for column in columns]
        for row in zip(*columns, strict=True):
            cells = [
                cell.ljust(width) if name in ("", "attention", "pattern") else cell.rjust(width)
                for cell, width, (name, *_) in zip(row, widths, columns, strict=True)
            ]
            yield "  ".join(cells).rstrip()

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for cost in self.attention:
            count = len(cost.layers)
            pairs = f"{count * cost.useful:,}", f"{count * cost.computed:,}", f"{cost.share:.2%}"
            spent = _time(count * cost.flops / self.speed.attention / 1e9)
            first = numbered("layer", cost.layers), cost.name, f"{cost.sees:,}"
            yield (*first, *pairs, _megabytes(cost.plan_bytes, 2), spent, cost.pattern)
        if self.subject.config.layers == len(self.attention) == 1:
            return
        pairs = f"{self.useful:,}", f"{self.computed:,}", f"{self.useful / max(self.dense, 1):.2%}"
        seen, spent = f"{self.receptive_field.tokens[-1]:,}", _time(self.seconds["attention"])
        yield ("together", "", seen, *pairs, _megabytes(self.memory["plans"], 2), spent, "")

    def _costs(self) -> Iterator[str]:
        known, complete = self.receptive_field.tokens, self.receptive_field.complete
        seen = f"{known[0]:,} tokens after layer 0"
        if complete is None and known.size > 1:
            seen += f", {known[-1]:,} after the last"
        elif complete is not None and complete > 1:
            seen += f", all after layer {complete - 1}"
        yield f"sees      a token in the middle: {seen}"
        for cost in self.attention:
            if cost.graph is not None:
                yield f"graph     {numbered('layer', cost.layers)}: {cost.graph}"
        work = [f"{self.flops[kind] / 1e9:,.1f} GFLOP in {_KINDS[kind]}" for kind in self._kinds]
        yield f"work      {', '.join(work)}"
        *parts, (_, peak) = [(name, _megabytes(size, 1)) for name, size in self.memory.items()]
        shown = ", ".join(f"{name} {size}" for name, size in parts if self.memory[name])
        yield f"memory    about {peak}: {shown}, {_megabytes(self._scratch, 1)} of it for each thread"

    def _time(self) -> Iterator[str]:
        speeds = {"linear": self.speed.linear, "attention": self.speed.attention}
        rates = ", ".join(f"{speeds[kind]:.0f} GFLOP/s in {_KINDS[kind]}" for kind in self._kinds)
        how = f"on {plural(self.threads, 'thread')}, measured just now" if self.speed.measured else "as given"
        yield f"time      {_time(self.total)}, predicted ({rates}; {how})"
        for kind, words in _KINDS.items() if self.work.linear_flops else ():
            share = self.seconds[kind] / self.total if self.total else 0.0
            bar = "█" * round(share * _BAR)
            yield f"          {words:<17}  {bar:<{_BAR}}  {_time(self.seconds[kind]):>8}  {share:4.0%}"
        if self.computed < NEAR * self.dense:
            ratio = self.full / self.total if self.total else 1.0
            yield f"full      {_time(self.full)} if every token saw every other: {ratio:.1f} times as long"
        yield from (f"advice    {sentence}" for sentence in self.advice)


def explain(
    model: EncoderConfig | Pattern | Sequence[Pattern] | str | Path,
    length: int | Layout | None = None,
    *,
    marked: Iterable[int] | None = None,
    heads: int | None = None,
    head_size: int | None = None,
    gflops: float | tuple[float, float] | None = None,
) -> CostReport:
    """What a forward pass takes: pairs, receptive field, memory, time, and what dominates.

    `model` is a config, a folder, a name on the hub, or the name of a preset (no weights are
    read); or a pattern, or a sequence of patterns, one for each layer, with `heads` heads of `head_size`.
    `length` is that of one document, or a layout; `marked` are its global tokens, by default those that the
    family has. The time is a prediction: from rates measured here in about a second, or from `gflops`, either
    one rate for all or those of linear layers and of attention.

    >>> report = explain("longformer-base", 4096, gflops=100)
    >>> report.dominates, report.receptive_field.complete
    ('linear', 2)
    >>> from longspan.patterns import Window
    >>> explain([Window(2)] * 3, 100, gflops=100).receptive_field.tokens
    array([ 5,  9, 13])
    """
    inspected = subject(model, heads, head_size)
    config, layout = inspected.config, inspected.layout(length, marked)
    calls = config.attention(layout)
    if gflops is None:
        speed = measure(config, _heaviest(inspected, layout))
    else:
        speed = stated(*gflops) if isinstance(gflops, tuple) else stated(gflops)
    work = Work() if isinstance(config, Stack) else dry_run(config, layout)
    return CostReport(
        subject=inspected,
        layout=layout,
        attention=tuple(attention_costs(calls, layout, config, work)),
        work=work,
        speed=speed,
        receptive_field=receptive_field(calls, layout, heads=config.heads),
        threads=torch.get_num_threads(),
    )


def _heaviest(inspected: Subject, layout: Layout) -> AttentionSpec:
    """The attention that computes the most pairs, on a document short enough to be timed soon."""
    if isinstance(inspected.config, Stack):
        short = layout.take(np.arange(min(layout.size, _TIMED)))
    else:
        short = inspected.layout(min(layout.size, _TIMED))
    calls = {call for layer in inspected.config.attention(short) for call in layer}
    return max(calls, key=lambda call: call.plan(inspected.config.heads).pairs_computed)


def _megabytes(size: int, digits: int) -> str:
    return f"{size / 2**20:,.{digits}f} MB"


def _time(seconds: float) -> str:
    """
    >>> _time(0.0123), _time(2.5), _time(150)
    ('12.3 ms', '2.50 s', '150 s')
    """
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"
