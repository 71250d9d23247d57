"""Peak memory of one call in a process of its own: `python -m longspan.bench.memory native 4096`."""

import argparse
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from longspan.bench import peers
from longspan.bench.bars import UNMEASURED, Bar, Maker, figures
from longspan.bench.measure import Missing, Turn, conditions, printed
from longspan.bench.ours import Work
from longspan.bench.report import Figure, Timing

MEGABYTE = 1e6
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def series(name: str, n: int, *, backward: bool = False) -> Maker:
    """Radius 256 and one global token at length n: `full`, `transformers`, `tiled` or `native`."""
    if name == "full":
        return partial(peers.sdpa, n)
    if name == "transformers":
        return partial(peers.longformer, n, backward=backward)
    return Work(lengths=(n,), backend=name, backward=backward)


SERIES = ("full", "transformers", "tiled", "native")


def extra(name: str, n: int, *, backward: bool = False) -> float:
    """Megabytes one call needs at its peak beyond q, k, v, its output, log-sum-exps and gradients."""
    options = [f"--threads={torch.get_num_threads()}", *(["--backward"] if backward else [])]
    return max(0, int(printed("-m", "longspan.bench.memory", name, str(n), *options))) / MEGABYTE


@dataclass(frozen=True)
class MemoryCase:
    """Peak memory of the native backend at length n, in megabytes."""

    name: str
    n: int
    bar: float
    backward: bool = False

    def measured(self, rounds: int, budget: float = 0.0) -> tuple[list[Figure], list[Timing]]:
        """One figure; memory does not vary, so it is measured once."""
        bar = Bar("extra MB", lambda r: r["ours"].peak, ("ours",), self.bar, at_least=False)
        try:
            turn = Turn(math.nan, math.nan, peak=extra("native", self.n, backward=self.backward))
        except Missing as reason:
            return figures(self.name, [bar], [], {"ours": str(reason)}), []
        return figures(self.name, [bar], [{"ours": turn}], {}), []


def warm_up() -> None:
    """Start torch's threads and autograd, but not the measured call: scratch that it keeps has to count."""
    x = torch.ones(256, 256, requires_grad=True)
    torch.autograd.grad((x @ x).softmax(-1).sum(), x)


def in_use(name: str) -> int:
    """Bytes of the process: "VmRSS" now, "VmHWM" at the peak."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])


def accounted(name: str, n: int, results: object) -> int:
    """Bytes of results, log-sum-exps (one float per row and head) and, for transformers, of q, k and v."""
    results = results if isinstance(results, tuple) else ()
    projected = 3 * n * peers.WIDTH * 4 if name == "transformers" else 0
    return sum(x.nbytes for x in results if isinstance(x, Tensor)) + n * peers.HEADS * 4 + projected


def main() -> None:
    """The child's side: print the bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("series", choices=SERIES)
    parser.add_argument("n", type=int)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--backward", action="store_true")
    options = parser.parse_args()
    if not CLEAR.exists():
        raise SystemExit(UNMEASURED)
    torch.set_num_threads(options.threads)
    try:
        run = series(options.series, options.n, backward=options.backward)()
    except Missing as reason:
        raise SystemExit(str(reason)) from None
    warm_up()
    with conditions(run):
        CLEAR.write_text("5")  # the peak starts again from what is in use now
        before = in_use("VmRSS")
        results = run.call()
        gained = in_use("VmHWM") - before
    print(gained + run.held - accounted(options.series, options.n, results))


if __name__ == "__main__":
    main()
