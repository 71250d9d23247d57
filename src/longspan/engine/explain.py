"""A plan in words."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch

from longspan.engine.backends import BACKENDS, load
from longspan.engine.backends.base import Problem
from longspan.words import numbered, plural

if TYPE_CHECKING:
    from longspan.engine.plan import Plan


def explain(plan: "Plan", dtype: torch.dtype, device: torch.device, size: int = 64) -> str:
    """What `Plan.explain` returns; `size` is the head size that the backends are asked about."""
    heading = f"{plan.pattern!r} for {plural(plan.heads, 'head')}"
    lines = [f"  {name:<10}{text}" for name, text in _facts(plan)]
    return "\n".join([heading, *lines, *_backends(plan, dtype, device, size)])


def _facts(plan: "Plan") -> Iterator[tuple[str, str]]:
    a = plan.arrays
    yield "queries", repr(plan.queries)
    yield "keys", "the same rows" if plan.keys == plan.queries else repr(plan.keys)
    for number in range(a.class_start.shape[0] - 1):
        heads = (a.head_class == number).nonzero().flatten().tolist()
        yield f"class {number}", f"{numbered('head', heads)}: {plan.pattern.head(heads[0])!r}"
    full = int((a.entries[:, 1] < 0).sum())
    masked, masks = a.entries.shape[0] - full, plural(a.masks.shape[0], "mask")
    yield "tiles", f"{a.q_rows.shape[0]:,} of queries, {a.k_rows.shape[0]:,} of keys"
    yield "entries", f"{full:,} full, {masked:,} partial with {masks}"
    if plan.labels is not None:
        ramps = int(a.label_kind.sum())
        yield "labels", f"{plan.labels!r}: {plural(a.label_tiles.shape[0], 'tile')}, {ramps:,} of them ramps"
    allowed, computed = plan.pairs_allowed, plan.pairs_computed
    extra = f" ({computed / allowed - 1:+.1%})" if allowed else ""
    dense = f"{allowed / max(plan.pairs_dense, 1):.2%} of full attention"
    yield "pairs", f"{allowed:,} allowed, {dense}; {computed:,} computed{extra}"
    yield "memory", f"{a.nbytes / 2**20:.2f} MB for the plan"


def _backends(plan: "Plan", dtype: torch.dtype, device: torch.device, size: int) -> Iterable[str]:
    """Which backend would run, and what keeps each of the others."""
    number = torch.empty(1, dtype=dtype, device=device)  # the backends look at shapes, not at values
    q, k = (number.expand(layout.size, plan.heads, size) for layout in (plan.queries, plan.keys))
    problem = Problem(q, k, k, plan.to(device), scale=1.0)
    runs = ""
    for name in BACKENDS:
        refusal = load(name).refuses(problem)
        text = "; ".join(refusal) if refusal else f"would do as well, but {runs} comes first"
        if not refusal and not runs:
            runs, text = name, f"runs {str(dtype).removeprefix('torch.')} with head size {size} on {device}"
        yield f"  {name:<10}{text}"
