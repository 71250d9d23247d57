"""One model in a process of its own, asked for turns: `python -m longspan.bench.worker THREADS JOB`."""

import json
import math
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import TextIO

import torch

from longspan.bench.jobs import Job
from longspan.bench.measure import Missing, Run, Sgemm, Turn, conditions, turn
from longspan.bench.memory import CLEAR, in_use, warm_up


def serve(run: Run, requests: Iterable[str], answers: TextIO, *, warm: bool) -> None:
    """Build up, say so, then answer every requesting line with a turn."""
    sgemm = Sgemm()
    warm_up()
    built = in_use("VmRSS") if CLEAR.exists() else 0  # all that grows from here on is the run's
    if warm:
        with conditions(run):
            run.call()
    print(file=answers, flush=True)
    for _ in requests:
        print(json.dumps(asdict(measured(run, sgemm, built))), file=answers, flush=True)


def measured(run: Run, sgemm: Sgemm, built: int) -> Turn:
    """One call between two matrix products, and how far the process grew beyond `built` bytes at most."""
    if CLEAR.exists():
        CLEAR.write_text("5")  # the peak starts again from what is in use now
    taken = turn(run, 1, sgemm)
    return replace(taken, peak=in_use("VmHWM") - built if CLEAR.exists() else math.nan)


def main() -> None:
    """The child's side; stdout is kept for answers, whatever libraries print."""
    threads, job = int(sys.argv[1]), Job.from_json(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    try:
        run = job()
    except Missing as reason:
        raise SystemExit(str(reason)) from None
    serve(run, sys.stdin, answers, warm=job.warm_up)


if __name__ == "__main__":
    main()
