"""How fast this machine computes what a model consists of, measured in about a second."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch
from torch.nn import functional as F

from longspan import native
from longspan.engine.call import attention
from longspan.engine.plan import plan
from longspan.engine.report import FLOPS
from longspan.errors import bad
from longspan.models.calls import Call
from longspan.models.config import EncoderConfig
from longspan.nn.activations import activation
from longspan.nn.linear import Linear
from longspan.nn.rows import ROWS

SAMPLE = 0.12
"""Seconds that each measurement takes, about."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Rates of one machine, for the sizes of one model."""

    linear: float
    "GFLOP/s of linear layers."
    attention: float
    "GFLOP/s of attention, by the pairs computed."
    light: float
    "Numbers that norms write per second, in thousands of millions."
    activation: float
    "The same for the activation of the feed-forward layers; inf where it is fused with them."
    measured: bool = True


def given(gflops: float, attention: float | None = None) -> Speed:
    """Rates that somebody states; attention is as fast as linear layers unless told, the rest counts nothing.

    >>> given(100).attention
    100
    """
    for name, value in (("gflops", gflops), ("attention", attention)):
        if value is not None and not value > 0:
            raise bad(name, "more than 0", value)
    forever = float("inf")
    return Speed(
        linear=gflops,
        attention=gflops if attention is None else attention,
        light=forever,
        activation=forever,
        measured=False,
    )


@torch.inference_mode()
def measure(config: EncoderConfig, call: Call) -> Speed:
    """The rates at the model's own sizes; `call` is the attention to measure."""
    rows = min(ROWS, call.queries.size)
    x = torch.randn(rows, config.width)
    up, down = Linear(config.width, config.feed_forward), Linear(config.feed_forward, config.width)
    act = activation(config.activation)
    wide = up(x)
    seconds = _seconds(lambda: down(up(x)))
    pairs = plan(call.pattern, call.queries, call.keys, heads=config.heads)
    size = config.width // config.heads
    q, k, v = torch.randn(max(call.queries.size, call.keys.size), 3, config.heads, size).unbind(1)
    q, k, v = q[: call.queries.size], k[: call.keys.size], v[: call.keys.size]
    spent = _seconds(lambda: attention(q, k, v, pairs))
    fused = act is F.gelu and native.core() is not None
    return Speed(
        linear=4 * rows * config.width * config.feed_forward / seconds / 1e9,
        attention=FLOPS * size * pairs.pairs_computed / spent / 1e9,
        light=x.numel() / _seconds(lambda: F.layer_norm(x, x.shape[1:])) / 1e9,
        activation=float("inf") if fused else wide.numel() / _seconds(lambda: act(wide)) / 1e9,
    )


def _seconds(step: Callable[[], object]) -> float:
    """What a step takes, the median of some; the first one warms up."""
    step()
    found: list[float] = []
    while sum(found) < SAMPLE or (len(found) < 3 and sum(found) < 3 * SAMPLE):
        start = perf_counter()
        step()
        found.append(perf_counter() - start)
    return median(found)
