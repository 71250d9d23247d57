"""The benchmark beside busy threads: it starts and ends them, and its bars read runs that exist."""

import os
from pathlib import Path

import pytest

from longspan.bench import load


def children() -> list[str]:
    """The processes that this one has started."""
    return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc here")
def test_busy_threads_run_beside_the_block_and_end_with_it() -> None:
    before = children()
    with load.busy(2):
        assert len(children()) == len(before) + 2
    assert children() == before


@pytest.mark.parametrize("alone", [True, False])
def test_bars_read_runs_that_exist(alone: bool) -> None:
    known = load.jobs().keys()
    bars = [bar for bar in load.bars(alone=alone) if bar.bar is not None]
    assert [bar.bar for bar in bars] == [1.15, 1.15] if alone else [1.0, 1.0]
    assert all(name in known for bar in load.bars(alone=alone) for name in bar.reads)
