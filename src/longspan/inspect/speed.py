"""How fast this machine computes what a model consists of, measured in about a second."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from statistics import median
from time import perf_counter

import torch
from torch.nn import functional as F

from longspan import native
from longspan.engine.call import attention
from longspan.errors import bad
from longspan.families.attention_spec import AttentionSpec
from longspan.families.config import EncoderConfig
from longspan.inspect.stack import Stack
from longspan.nn.activations import activation
from longspan.nn.linear import linear, new_linear
from longspan.nn.rows import ROWS

FLOPS = 4
"""Floating-point operations per pair, head and dimension of a forward pass: two products and two sums."""
_SAMPLE = 0.12  # seconds that each measurement takes, about


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Rates of one machine, for the sizes of one model; inf for what is not there or takes no time."""

    attention: float
    "GFLOP/s of attention, by the pairs computed."
    linear: float = inf
    "GFLOP/s of linear layers."
    light: float = inf
    "Numbers that norms write per second, in thousands of millions."
    activation: float = inf
    "The same for the activation of the feed-forward layers; inf where it is fused with them."
    measured: bool = True


def stated(gflops: float, attention: float | None = None) -> Speed:
    """Rates that somebody states, attention as fast as linear layers unless said; the rest takes no time.

    >>> stated(100).attention
    100
    """
    for name, value in (("gflops", gflops), ("attention", attention)):
        if value is not None and not value > 0:
            raise bad(name, "more than 0", value)
    return Speed(linear=gflops, attention=gflops if attention is None else attention, measured=False)


@torch.inference_mode()
def measure(config: EncoderConfig | Stack, call: AttentionSpec) -> Speed:
    """The rates at the model's own sizes; `call` is the attention to measure."""
    size = config.head_size
    pairs = call.plan(config.heads)
    q, k, v = torch.randn(max(call.queries.size, call.keys.size), 3, config.heads, size).unbind(1)
    q, k, v = q[: call.queries.size], k[: call.keys.size], v[: call.keys.size]
    spent = _seconds(lambda: attention(q, k, v, pairs))
    attended = FLOPS * size * pairs.pairs_computed / spent / 1e9
    if isinstance(config, Stack):
        return Speed(attention=attended)
    rows = min(ROWS, call.queries.size)
    x = torch.randn(rows, config.width)
    up, down = new_linear(config.width, config.feed_forward), new_linear(config.feed_forward, config.width)
    act = activation(config.activation)
    wide = linear(up, x)
    fused = act is F.gelu and native.core() is not None
    return Speed(
        attention=attended,
        linear=4
        * rows
        * config.width
        * config.feed_forward
        / _seconds(lambda: linear(down, linear(up, x)))
        / 1e9,
        light=x.numel() / _seconds(lambda: F.layer_norm(x, x.shape[1:])) / 1e9,
        activation=inf if fused else wide.numel() / _seconds(lambda: act(wide)) / 1e9,
    )


def _seconds(step: Callable[[], object]) -> float:
    """What a step takes, the median of some; the first one warms up."""
    step()
    times: list[float] = []
    while sum(times) < _SAMPLE or (len(times) < 3 and sum(times) < 3 * _SAMPLE):
        start = perf_counter()
        step()
        times.append(perf_counter() - start)
    return median(times)
