"""What is timed against transformers is timed once more where both keep their pages."""

import os
from dataclasses import replace

import torch

from longspan.bench.cases import KeptCase, cases
from longspan.bench.jobs import KEEP_PAGES
from longspan.bench.kept import Measured, kept
from longspan.bench.measure import Spread
from longspan.bench.report import Figure, Timing

ONE = Spread(1.0, 1.0, 1.0)


def told() -> Measured:
    """Runs in the child: its threads as a figure, its variables as another's name."""
    threads = float(torch.get_num_threads())
    names = ", ".join(name for name in KEEP_PAGES if os.environ.get(name) == KEEP_PAGES[name])
    against = Figure("a", f"x faster than transformers with {names}", replace(ONE, median=threads))
    return [against, Figure("a", "of sgemm", ONE)], [Timing("a", "ours", ONE, None)]


def ended() -> Measured:
    os.abort()


def test_the_figures_against_transformers_come_from_such_a_process() -> None:
    figures, timings = kept("a-kept", told)
    (figure,) = figures
    assert figure.case == timings[0].case == "a-kept"
    assert all(name in figure.measure for name in KEEP_PAGES)
    assert figure.spread is not None
    assert figure.spread.median == torch.get_num_threads()
    assert not KEEP_PAGES.keys() & os.environ.keys()


def test_a_process_that_ends_is_a_figure_that_is_skipped() -> None:
    (figure,), timings = kept("a-kept", ended)
    assert figure.verdict == "skipped"
    assert timings == []


def test_every_case_of_attention_against_transformers_has_one() -> None:
    known = cases()
    against = {name for name, case in known.items() if "transformers" in getattr(case, "runs", ())}
    assert against == {"forward", "training", "tiled", "bigbird"}
    assert {case.case for case in known.values() if isinstance(case, KeptCase)} == against
