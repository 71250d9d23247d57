"""Longspan's own attention as something to time."""

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch

from longspan.bench.measure import Missing, Run, Tensors, fused, with_gradients
from longspan.engine.call import attention
from longspan.engine.labels import ClippedDistance
from longspan.engine.plan import Plan, plan
from longspan.engine.terms import RelativeKeys
from longspan.layout import Layout
from longspan.native import force_target, targets
from longspan.patterns import Full, GlobalTokens, Pattern, Window


def longformer(radius: int = 256, dilation: int | tuple[int, ...] = 1) -> Pattern:
    """A window, and marked tokens that see everything and are seen by everything."""
    return Window(radius, dilation=dilation) | GlobalTokens()


def useful_flops(pairs: int, size: int, *, backward: bool) -> int:
    """FLOPs that allowed pairs (summed over heads) are worth: two products forward, five more backward.

    >>> useful_flops(10, 64, backward=False), useful_flops(10, 64, backward=True)
    (2560, 8960)
    """
    return (14 if backward else 4) * size * pairs


LONGFORMER = longformer()
NAMES = {"avx2": "AVX2", "avx512": "AVX-512"}


@dataclass(frozen=True, kw_only=True)
class Work:
    """One attention of ours; calling it makes the inputs and the plan."""

    pattern: Pattern = LONGFORMER
    lengths: tuple[int, ...] = (4096,)
    """Documents packed end to end, the first token of each marked."""
    heads: int = 12
    size: int = 64
    backward: bool = False
    relative: int | None = None
    """Relative keys up to this distance."""
    backend: str = "native"
    target: str | None = None
    """Instruction set to force."""
    threads: int | None = None

    def __call__(self) -> Run:
        within = forcing(self.backend, self.target)
        compiled = self.plan()
        q, k, v = fused(sum(self.lengths), 3, self.heads, self.size, grad=self.backward)
        learned: Tensors = ()
        if self.relative is not None:
            labels = 2 * self.relative + 1
            learned = (torch.randn(labels, self.heads, self.size).requires_grad_(self.backward),)
        terms = tuple(map(RelativeKeys, learned))

        def forward() -> Tensors:
            return (attention(q, k, v, compiled, terms=terms, backend=self.backend),)

        both = with_gradients(forward, (q, k, v, *learned), (torch.ones(q.shape),))
        return Run(
            both if self.backward else forward,
            amount=useful_flops(compiled.pairs_allowed, self.size, backward=self.backward),
            grad=self.backward,
            threads=self.threads,
            held=compiled.arrays.nbytes,
            within=within,
        )

    def plan(self) -> Plan:
        """The plan, from the cache if it was made before."""
        labels = None if self.relative is None else ClippedDistance(self.relative)
        layout = Layout.packed(self.lengths, marked=[[0]] * len(self.lengths))
        return plan(self.pattern, layout, heads=self.heads, labels=labels)


def decoding(rows: int = 4, keys: int = 8192, heads: int = 12, size: int = 64) -> Run:
    """A few new rows that see all cached keys; worth the bytes of K and V."""
    within = forcing("native", None)
    queries = Layout.packed([rows], start=keys - rows)
    compiled = plan(Full(), queries, Layout.packed([keys]), heads=heads)
    (q,) = fused(rows, 1, heads, size)
    k, v = fused(keys, 2, heads, size)
    return Run(
        lambda: attention(q, k, v, compiled, backend="native"), amount=k.nbytes + v.nbytes, within=within
    )


def planning(n: int = 4096) -> Run:
    """Building plans of about n tokens, each for a layout never seen before, so that no cache helps."""
    fresh = itertools.count()

    def build() -> Plan:
        number = next(fresh)
        layout = Layout.packed([n - number % 64], marked=[[0]], start=number)
        return plan(LONGFORMER, layout, heads=12)

    return Run(build)


def forcing(backend: str, target: str | None) -> Callable[[], AbstractContextManager[object]]:
    """The context that forces an instruction set; Missing if the backend or the target cannot run here."""
    if backend != "native":
        return nullcontext
    if not targets():
        raise Missing("the native backend is not built here")
    if target is None:
        return nullcontext
    if target not in targets():
        raise Missing(f"this processor has no {NAMES[target]}")
    return partial(force_target, target)
