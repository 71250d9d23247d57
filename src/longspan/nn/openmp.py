"""The OpenMP threads of torch's operators, beside those of the core."""

from functools import cache
from threading import Event, Thread

import torch


@cache
def calm_openmp() -> None:
    """Let the threads of torch's operators sleep soon after their work, not spin where ours would run.

    libgomp spins for milliseconds, unless it has more threads than there are processors: then for a few
    microseconds. A second team of its threads, which rests for good, sees to that.
    """
    if torch.get_num_threads() > 1:
        made = Event()
        Thread(target=_hold_team, args=(made,), name="longspan-openmp", daemon=True).start()
        made.wait()


def _hold_team(made: Event) -> None:
    torch.zeros(1 << 20).add_(1)  # large enough for all threads
    made.set()
    Event().wait()
