"""Measuring in a process whose allocator keeps its pages, on both sides; by default glibc returns them."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import get_context
from typing import ParamSpec

import torch

from longspan.bench.jobs import KEEP_PAGES
from longspan.bench.processes import variables
from longspan.bench.report import Figure, Timing

Measured = tuple[list[Figure], list[Timing]]
P = ParamSpec("P")


def kept(name: str, measured: Callable[P, Measured], *arguments: P.args, **options: P.kwargs) -> Measured:
    """The figures against transformers of such a process, under another case's name."""
    with (
        variables(KEEP_PAGES),
        ProcessPoolExecutor(
            1, get_context("spawn"), initializer=torch.set_num_threads, initargs=(torch.get_num_threads(),)
        ) as pool,
    ):
        try:
            figures, timings = pool.submit(measured, *arguments, **options).result()
        except BrokenProcessPool:
            return [Figure(name, "", skipped="its process ended, perhaps for lack of memory")], []
    against = [replace(figure, case=name) for figure in figures if "transformers" in figure.measure]
    return against, [replace(timing, case=name) for timing in timings]
