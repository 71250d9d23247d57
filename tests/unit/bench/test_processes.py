import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from longspan.bench import processes
from longspan.bench.jobs import KEEP_PAGES, Job
from longspan.bench.measure import Missing, Round, Turn
from longspan.bench.processes import take_turns

TINY = Job(layers=1, width=16, heads=2, feed_forward=32, vocab_size=31, radius=4, positions=64, lengths=(50,))


class Scripted:
    """A worker that needs no process."""

    def __init__(self, log: list[str], job: Job) -> None:
        self.log, self.name = log, job.who

    def wait(self) -> None:
        if self.name == "absent":
            raise Missing("it is not installed")

    def turn(self) -> Turn:
        self.log.append(self.name)
        if self.name == "dying" and self.log.count("dying") == 2:
            raise Missing("ended by SIGKILL")
        return Turn(1.0, 0.0)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Workers are replaced by scripted ones, named after the `who` of their job; the turns they take."""
    taken: list[str] = []

    @contextmanager
    def scripted(job: Job) -> Iterator[Scripted]:
        yield Scripted(taken, job)
        taken.append(f"{job.who} ended")

    monkeypatch.setattr(processes, "worker", scripted)
    return taken


def turns(*names: str, rounds: int) -> tuple[list[Round], dict[str, str]]:
    results: list[Round] = []
    missing: dict[str, str] = {}
    take_turns({name: replace(TINY, who=name) for name in names}, results, missing, rounds)
    return results, missing


def test_workers_take_turns_and_end_with_the_case(log: list[str]) -> None:
    results, missing = turns("a", "b", rounds=2)
    assert log == ["a", "b", "a", "b", "b ended", "a ended"]
    assert [set(result) for result in results] == [{"a", "b"}] * 2
    assert not missing


def test_one_that_cannot_be_built_does_not_stop_the_others(log: list[str]) -> None:
    results, missing = turns("a", "absent", rounds=2)
    assert [set(result) for result in results] == [{"a"}] * 2
    assert missing == {"absent": "it is not installed"}


def test_nothing_is_measured_if_none_can_be_built(log: list[str]) -> None:
    assert turns("absent", rounds=2)[0] == []


def test_one_that_dies_on_the_way_is_missing_from_there_on(log: list[str]) -> None:
    results, missing = turns("a", "dying", rounds=3)
    assert [set(result) for result in results] == [{"a", "dying"}, {"a"}, {"a"}]
    assert missing == {"dying": "ended by SIGKILL"}


def test_a_real_worker_tells_time_memory_and_sgemm_and_ends_by_itself() -> None:
    with processes.worker(TINY) as worker:
        worker.wait()
        turn = worker.turn()
    assert turn.seconds > 0
    assert turn.pace == pytest.approx(TINY.linear_flops / turn.seconds)
    assert turn.sgemm > 0
    assert turn.peak > 0 or sys.platform != "linux"
    assert worker.process.exitcode == 0  # killed, it would leave semaphores for Python to warn of


def test_a_job_that_cannot_be_built_gives_its_reason() -> None:
    with processes.worker(replace(TINY, who="nobody")) as worker:
        with pytest.raises(Missing, match="KeyError: 'nobody'"):
            worker.wait()
        with pytest.raises(Missing, match="ended with status 0"):
            worker.turn()


def test_a_worker_is_killed_if_the_block_fails() -> None:
    with pytest.raises(KeyboardInterrupt), processes.worker(TINY) as worker:
        raise KeyboardInterrupt
    assert worker.process.exitcode == -signal.SIGKILL


def test_a_worker_that_is_killed_says_so() -> None:
    with processes.worker(TINY) as worker:
        worker.process.kill()
        with pytest.raises(Missing, match="ended by SIGKILL, perhaps for lack of memory"):
            worker.turn()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_environment_of_a_worker_is_its_own() -> None:
    before = dict(os.environ)
    with processes.worker(replace(TINY, keep_pages=True)) as worker:
        worker.wait()  # before that, its environment may still be that of the fork
        assert dict(os.environ) == before
        born_with = Path(f"/proc/{worker.process.pid}/environ").read_bytes().split(b"\0")
    assert {f"{name}={value}".encode() for name, value in KEEP_PAGES.items()} <= set(born_with)


def test_variables_are_those_of_before_after_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSPAN_TEST_HERE", "old")
    before = dict(os.environ)
    with processes.variables({"LONGSPAN_TEST_HERE": "new", "LONGSPAN_TEST_NEW": "1"}):
        assert os.environ["LONGSPAN_TEST_HERE"] == "new"
        assert os.environ["LONGSPAN_TEST_NEW"] == "1"
    assert dict(os.environ) == before
