"""`longspan.explain`: what a model costs on a document of some length, and what dominates."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import torch

from longspan.engine.explain import plural
from longspan.engine.plan import Plan, plan
from longspan.engine.report import FLOPS, scratch
from longspan.inspect.advice import NEAR, advice
from longspan.inspect.field import Field, field
from longspan.inspect.layers import titled
from longspan.inspect.speed import Speed, given, measure
from longspan.inspect.subject import Subject, subject
from longspan.inspect.trial import Work, trial
from longspan.layout import Layout
from longspan.models.calls import Call, Calls
from longspan.models.config import EncoderConfig
from longspan.patterns.panel import at_one_length

CALIBRATED = 2048
"""Tokens of the document on which attention is timed, at most."""
BAR = 32
KINDS = {"linear": "linear layers", "attention": "attention", "rest": "embeddings, norms"}


@dataclass(frozen=True, kw_only=True)
class CallReport:
    """One attention, the same in all of `layers`; pairs are those of one layer, summed over its heads."""

    layers: tuple[int, ...]
    name: str
    pattern: str
    useful: int
    "Pairs of a query and a key that may attend."
    computed: int
    "Pairs that the kernel computes."
    share: float
    "Useful pairs as a share of full attention's."
    plan_bytes: int
    scratch_bytes: int
    "What each thread needs."
    flops: int


@dataclass(frozen=True, kw_only=True)
class ModelReport:
    """What `explain` returns; print it, read its fields, or take `as_json()`."""

    subject: Subject
    layout: Layout
    calls: tuple[CallReport, ...]
    work: Work
    speed: Speed
    field: Field
    threads: int

    @cached_property
    def useful(self) -> int:
        """Pairs that may attend, of all layers and heads."""
        return sum(len(call.layers) * call.useful for call in self.calls)

    @cached_property
    def computed(self) -> int:
        """Pairs that are computed, of all layers and heads."""
        return sum(len(call.layers) * call.computed for call in self.calls)

    @cached_property
    def dense(self) -> int:
        """Pairs that full attention would compute."""
        config = self.subject.config
        return config.layers * config.heads * int((self.layout.lengths.astype("int64") ** 2).sum())

    @cached_property
    def flops(self) -> dict[str, int]:
        """Floating-point operations of linear layers and of attention."""
        attended = sum(len(call.layers) * call.flops for call in self.calls)
        return {"linear": self.work.products, "attention": attended}

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
        attended = FLOPS * self.subject.config.width // self.subject.config.heads * self.dense
        return self.total - self.seconds["attention"] + attended / self.speed.attention / 1e9

    @property
    def dominates(self) -> str:
        """What takes most of the time."""
        return max(self.seconds, key=lambda kind: self.seconds[kind])

    @cached_property
    def memory(self) -> dict[str, int]:
        """Bytes in float32: weights, results on the way, plans, the threads' scratch, and all together."""
        parts = {
            "weights": 4 * self.work.parameters,
            "activations": self.work.held,
            "plans": sum({(c.pattern, c.name): c.plan_bytes for c in self.calls}.values()),
            "scratch": self.threads * max((call.scratch_bytes for call in self.calls), default=0),
        }
        return parts | {"peak": sum(parts.values())}

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What could be done better, if anything."""
        return tuple(advice(self))

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "model": self.subject.name,
            "family": self.subject.family,
            "length": self.layout.size,
            "marked": int(self.layout.marked_rows.size),
            "layers": self.subject.config.layers,
            "heads": self.subject.config.heads,
            "width": self.subject.config.width,
            "parameters": self.work.parameters,
            "calls": [asdict(call) for call in self.calls],
            "pairs": {"useful": self.useful, "computed": self.computed, "full": self.dense},
            "receptive_field": self.field.tokens.tolist(),
            "flops": self.flops,
            "memory_bytes": self.memory,
            "threads": self.threads,
            "speed": {
                "measured": self.speed.measured,
                "linear_gflops": self.speed.linear,
                "attention_gflops": self.speed.attention,
            },
            "predicted_seconds": self.seconds | {"total": self.total, "full_attention": self.full},
            "dominates": self.dominates,
            "advice": list(self.advice),
        }

    def __str__(self) -> str:
        return "\n".join([*self._heading(), "", *self._table(), "", *self._costs(), "", *self._time()])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def _heading(self) -> Iterator[str]:
        config, beside = self.subject.config, self.field.start.size - self.layout.size
        sizes = f"{plural(config.layers, 'layer')} of width {config.width:,}, {plural(config.heads, 'head')}"
        weights = f"{self.work.parameters / 1e6:.1f} M parameters"
        yield f"{self.subject.name}: {self.subject.family}, {sizes}, {weights}"
        yield self.subject.told(self.layout, beside)

    def _table(self) -> Iterator[str]:
        rows = [("", "call", "useful pairs", "computed", "of full", "pattern")]
        for call in self.calls:
            count = len(call.layers)
            costs = f"{count * call.useful:,}", f"{count * call.computed:,}", f"{call.share:.2%}"
            rows.append((titled(call.layers), call.name, *costs, call.pattern))
        share = f"{self.useful / max(self.dense, 1):.2%}"
        rows.append(("together", "", f"{self.useful:,}", f"{self.computed:,}", share, ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for layers, name, *numbers, pattern in rows:
            cells = [cell.rjust(width) for cell, width in zip(numbers, widths[2:5], strict=True)]
            yield "  ".join([layers.ljust(widths[0]), name.ljust(widths[1]), *cells, pattern]).rstrip()

    def _costs(self) -> Iterator[str]:
        known = self.field.tokens
        seen = f"{known[0]:,} tokens after layer 0"
        if self.field.complete is None:
            seen += f", {known[-1]:,} after the last"
        elif self.field.complete > 1:
            seen += f", all after layer {self.field.complete - 1}"
        yield f"sees      a token in the middle: {seen}"
        flops = {kind: f"{count / 1e9:,.1f} GFLOP" for kind, count in self.flops.items()}
        yield f"work      {flops['linear']} in linear layers, {flops['attention']} in attention"
        parts = {name: f"{size / 2**20:,.1f} MB" for name, size in self.memory.items()}
        told = f"weights {parts['weights']}, on the way {parts['activations']}, plans {parts['plans']}"
        yield f"memory    about {parts['peak']}: {told}, scratch {parts['scratch']}"

    def _time(self) -> Iterator[str]:
        rates = f"{self.speed.linear:.0f} GFLOP/s in linear layers, {self.speed.attention:.0f} in attention"
        how = f"on {plural(self.threads, 'thread')}, measured just now" if self.speed.measured else "as given"
        yield f"time      {_time(self.total)}, predicted ({rates}; {how})"
        for kind, words in KINDS.items():
            share = self.seconds[kind] / self.total if self.total else 0.0
            bar = "█" * round(share * BAR)
            yield f"          {words:<17}  {bar:<{BAR}}  {_time(self.seconds[kind]):>8}  {share:4.0%}"
        ratio = self.full / self.total if self.total else 1.0
        if self.computed < NEAR * self.dense:
            yield f"full      {_time(self.full)} if every token saw every other: {ratio:.1f} times as long"
        yield from (f"advice    {sentence}" for sentence in self.advice)


def explain(
    model: EncoderConfig | str | Path,
    length: int | None = None,
    *,
    marked: Iterable[int] | None = None,
    gflops: float | tuple[float, ...] | None = None,
) -> ModelReport:
    """What a forward pass over one document of `length` tokens takes: pairs, memory, time, what dominates.

    `model` is a config, a folder, a name on the hub, or a preset such as "longformer-base"; no weights are
    read. The time is a prediction: from rates measured here in about a second, or from `gflops`, those of
    linear layers and (if two are given) of attention.

    >>> report = explain("longformer-base", 4096, gflops=100)
    >>> report.dominates, report.field.complete
    ('linear', 2)
    """
    looked = subject(model)
    config, layout = looked.config, looked.layout(length, marked)
    calls = config.calls(layout)
    if gflops is None:
        short = config.calls(looked.layout(min(layout.size, CALIBRATED)))
        speed = measure(config, max({call for layer in short for call in layer}, key=_pairs(config.heads)))
    else:
        speed = given(*gflops) if isinstance(gflops, tuple) else given(gflops)
    work = trial(config, layout)
    return ModelReport(
        subject=looked,
        layout=layout,
        calls=tuple(_reports(calls, config, layout, work)),
        work=work,
        speed=speed,
        field=field(calls, layout, heads=config.heads),
        threads=torch.get_num_threads(),
    )


def _planned(call: Call, heads: int) -> Plan:
    return plan(call.pattern, call.queries, call.keys, heads=heads)


def _pairs(heads: int) -> Any:
    """What a call computes, to find the one that matters most."""
    return lambda call: _planned(call, heads).pairs_computed


def _reports(calls: Calls, config: EncoderConfig, layout: Layout, work: Work) -> Iterator[CallReport]:
    """Each distinct call once, with the layers that make it."""
    size = config.width // config.heads
    dense = config.heads * int((layout.lengths.astype("int64") ** 2).sum())
    made = [call for layer in calls for call in layer]
    wider = dict.fromkeys(made, 1.0)
    if len(work.attends) == len(made):  # a model may compute a call in another form that costs more
        for call, (rows, _, heads, wide) in zip(made, work.attends, strict=True):
            wider[call] = rows * heads * wide / max(call.queries.size * config.width, 1)
    for call in wider:
        pairs = _planned(call, config.heads)
        yield CallReport(
            layers=tuple(number for number, layer in enumerate(calls) if call in layer),
            name=call.name,
            pattern=repr(at_one_length(call.pattern, call.queries)),
            useful=pairs.pairs_allowed,
            computed=pairs.pairs_computed,
            share=pairs.pairs_allowed / max(dense, 1),
            plan_bytes=pairs.arrays.nbytes,
            scratch_bytes=scratch(pairs, size),
            flops=int(FLOPS * size * pairs.pairs_computed * wider[call]),
        )


def _time(seconds: float) -> str:
    """
    >>> _time(0.0123), _time(2.5), _time(150)
    ('12.3 ms', '2.50 s', '150 s')
    """
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    return f"{seconds:.2f} s" if seconds < 100 else f"{seconds:,.0f} s"
