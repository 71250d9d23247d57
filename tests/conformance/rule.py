"""How a backend is judged: by float64, with twice the error of plain torch code in the same dtype allowed."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache

import pytest
import torch
from torch import Tensor

from longspan import native
from longspan.engine.backends import BACKENDS, Missing, load
from longspan.engine.backends.base import arithmetic
from longspan.engine.call import attention
from longspan.engine.dropout import Dropout
from longspan.engine.labels import Labels
from longspan.engine.plan import plan
from longspan.engine.terms import RelativeKeys, ScoreTable, Term
from longspan.layout import Layout
from longspan.patterns import Pattern
from oracle import oracle

DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
Results = dict[str, Tensor]


@cache
def engines() -> tuple[str, ...]:
    """Every backend that can be imported; the compiled one once for each instruction set that runs here."""
    here = [name for name in BACKENDS if not isinstance(load(name), Missing)]
    if "native" in here:
        here[:1] = [f"native {target}" for target in native.targets()]
    return tuple(here)


@contextmanager
def running(engine: str) -> Iterator[str]:
    """The backend's name, with its instruction set forced meanwhile."""
    name, _, target = engine.partition(" ")
    if not target:
        yield name
        return
    with native.force_target(target):
        yield name


def everywhere(*dtypes: torch.dtype) -> pytest.MarkDecorator:
    """Runs a test for every dtype and every engine that knows it, engines fastest: they share a yardstick."""
    pairs = [(dtype, engine) for dtype in dtypes or DTYPES for engine in engines() if _knows(engine, dtype)]
    names = [f"{str(dtype).removeprefix('torch.')}, {engine}" for dtype, engine in pairs]
    return pytest.mark.parametrize(("dtype", "engine"), pairs, ids=names)


def _knows(engine: str, dtype: torch.dtype) -> bool:
    return dtype != torch.float64 or not engine.startswith("native")


@dataclass(frozen=True)
class Case:
    """One attention with random inputs, the same whenever it is made."""

    pattern: Pattern
    queries: Layout
    keys: Layout | None = None
    size: int = 7
    labels: Labels | None = None
    terms: frozenset[str] = frozenset()
    "Of relative, content and table those that are given."
    dropout: float = 0.0
    scale: float | None = None
    group: int = 1
    "Query heads that share a key head."
    value_size: int | None = None
    "The head size of the values, where it is another than that of the keys."
    softcap: float | None = None

    @property
    def heads(self) -> int:
        return self.pattern.heads_declared or 2 * self.group

    def inputs(self, dtype: torch.dtype) -> Results:
        """Random inputs of that dtype, by name."""
        chance = torch.Generator().manual_seed(17)
        n, h, d, g = self.queries.size, self.heads, self.size, self.heads // self.group
        k, e = (self.keys or self.queries).size, self.value_size or d
        labels = 0 if self.labels is None else self.labels.size
        shapes = {"q": (n, h, d), "k": (k, g, d), "v": (k, g, e), "grad_out": (n, h, e), "grad_lse": (n, h)}
        terms = {"relative": (labels, h, d), "content": (h, d), "table": (labels, h)}
        shapes |= {name: shape for name, shape in terms.items() if name in self.terms}
        return {name: torch.randn(shape, generator=chance).to(dtype) for name, shape in shapes.items()}


Attend = Callable[[Tensor, Tensor, Tensor, list[Term], Dropout | None], tuple[Tensor, Tensor]]


def results(case: Case, given: Results, attend: Attend) -> Results:
    """out, lse and the gradient of every input."""
    leaves = {name: x.detach().requires_grad_() for name, x in given.items() if not name.startswith("grad")}
    terms: list[Term] = []
    if "relative" in leaves:
        terms.append(RelativeKeys(leaves["relative"], leaves.get("content")))
    if "table" in leaves:
        terms.append(ScoreTable(leaves["table"]))
    dropout = Dropout(case.dropout, seed=2**40 + 3) if case.dropout else None
    out, lse = attend(leaves["q"], leaves["k"], leaves["v"], terms, dropout)
    upstream = given["grad_out"].to(out.dtype), given["grad_lse"].to(lse.dtype)
    grads = torch.autograd.grad((out, lse), list(leaves.values()), upstream)
    named = {f"d{name}": grad for name, grad in zip(leaves, grads, strict=True)}
    return {"out": out.detach(), "lse": lse.detach(), **named}


def by_oracle(case: Case, given: Results) -> Results:
    def attend(
        q: Tensor, k: Tensor, v: Tensor, terms: list[Term], dropout: Dropout | None
    ) -> tuple[Tensor, Tensor]:
        return oracle(
            q,
            k,
            v,
            case.pattern,
            case.queries,
            case.keys,
            labels=case.labels,
            scale=case.scale,
            terms=terms,
            softcap=case.softcap,
            dropout=dropout,
        )

    with torch.backends.mkldnn.flags(
        enabled=False, allow_tf32=None
    ):  # its half types may trap, see base.arithmetic
        return results(case, given, attend)


def by_engine(case: Case, given: Results, engine: str) -> Results:
    def attend(
        q: Tensor, k: Tensor, v: Tensor, terms: list[Term], dropout: Dropout | None
    ) -> tuple[Tensor, Tensor]:
        made = plan(case.pattern, case.queries, case.keys, heads=case.heads, labels=case.labels)
        return attention(
            q,
            k,
            v,
            made,
            scale=case.scale,
            terms=terms,
            softcap=case.softcap,
            dropout=dropout,
            return_lse=True,
            backend=name,
        )

    with running(engine) as name:
        return results(case, given, attend)


@lru_cache(maxsize=4)
def yardstick(case: Case, dtype: torch.dtype) -> tuple[Results, Results]:
    """The truth in float64 and what plain code makes of it in `dtype`."""
    given = case.inputs(dtype)
    return by_oracle(case, {name: x.double() for name, x in given.items()}), by_oracle(case, given)


def judge(case: Case, dtype: torch.dtype, engine: str) -> None:
    """Fails unless the engine's results and gradients are as good as the rule demands."""
    truth, naive = yardstick(case, dtype)
    compare(by_engine(case, case.inputs(dtype), engine), truth, naive, dtype)


def compare(found: Results, truth: Results, naive: Results, dtype: torch.dtype) -> None:
    """At most twice the error of plain code, an ulp of the result, and a few of the numbers added up."""
    ulps = 64 if dtype == torch.float64 else 8  # float64 has nothing better to be measured by than plain code
    rows = len(truth["out"])
    for name, true in truth.items():
        assert torch.equal(found[name] == -torch.inf, true == -torch.inf), name
        worst, usual = (_distance(x[name], true) for x in (found, naive))
        largest = _distance(true, torch.zeros_like(true))
        added = max(1.0, largest)
        if name in {"drelative", "dcontent", "dtable"}:  # these run over all rows
            added *= rows**0.5
        allowed = 2 * usual + _ulp(dtype) * largest + ulps * _ulp(arithmetic(dtype)) * added
        assert worst <= allowed, f"{name} is off by {worst:.3g}, plain code by {usual:.3g}"


def _ulp(dtype: torch.dtype) -> float:
    return float(torch.finfo(dtype).eps)


def _distance(a: Tensor, b: Tensor) -> float:
    """The largest difference between finite numbers."""
    finite = b.isfinite()
    return (a[finite].double() - b[finite].double()).abs().amax().item() if finite.any() else 0.0
