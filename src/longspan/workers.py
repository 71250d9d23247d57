"""Worker processes: a job for each part of a list, results in the order of the list."""

import pickle
import queue
import traceback
from collections.abc import Callable, Sequence
from itertools import count
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from typing import Any, Protocol, TypedDict

import torch
import torch.multiprocessing  # tensors cross to a worker in shared memory

from longspan.errors import LongspanError, bad, whole
from longspan.progress import progress_bar

MOST_WORKERS = 4
LARGEST = 5000
"""The most items of a part that nobody chose."""
POLL = 0.5
"""Seconds between looks at whether the workers live."""
_calls = count()
"""Tells the results of one call from what an interrupted one left behind."""


class WorkerPool(TypedDict):
    """Processes and the way to and from them, in the shape that sentence-transformers has."""

    input: "Queue[tuple[int, int, list[object], dict[str, object]]]"
    output: "Queue[tuple[int, int, list[object] | Exception]]"
    processes: list[BaseProcess]


class WorkerError(LongspanError, RuntimeError):
    """A worker process has died."""


class Job(Protocol):
    """What a worker does; it is pickled once for each worker."""

    def __call__(self, items: list[Any], options: dict[str, Any], /) -> list[Any]: ...


def start(job: Callable[[str | torch.device], Job], devices: Sequence[str | torch.device]) -> WorkerPool:
    """One new process for each device, which shares the machine's threads with the others.

    Processes are spawned, not forked: a fork would inherit locks that other threads hold. They end with this
    process, and by `stop`.
    """
    if not devices:
        raise bad("target_devices", "at least one device", [], "As in ['cpu', 'cpu'].")
    spawn = torch.multiprocessing.get_context("spawn")
    incoming, outgoing = spawn.Queue(), spawn.Queue()
    threads = max(1, torch.get_num_threads() // len(devices))
    processes: list[BaseProcess] = [
        spawn.Process(target=_work, args=(job, device, threads, incoming, outgoing), daemon=True)
        for device in devices
    ]
    for process in processes:
        process.start()
    return {"input": incoming, "output": outgoing, "processes": processes}


def stop(pool: WorkerPool) -> None:
    """End the processes of a pool; what they were doing is lost."""
    for process in pool["processes"]:
        process.terminate()
    for process in pool["processes"]:
        process.join()
        process.close()
    for way in (pool["input"], pool["output"]):
        way.cancel_join_thread()
        way.close()


def cpus() -> list[str]:
    """A device for each worker that this machine feeds: one for each thread of torch, up to four."""
    return ["cpu"] * min(MOST_WORKERS, torch.get_num_threads())


def results(
    pool: WorkerPool,
    items: Sequence[object],
    options: dict[str, object],
    *,
    chunk_size: int | None = None,
    shown: bool | None = None,
) -> list[Any]:
    """What the workers make of `items`, in order; the first error in that order is raised here."""
    size = -(-len(items) // (10 * len(pool["processes"]))) if chunk_size is None else chunk_size
    size = whole("chunk_size", max(1, min(size, LARGEST)) if chunk_size is None else size, 1)
    _check_portable(options)
    call, starts = next(_calls), range(0, len(items), size)
    for part, first in enumerate(starts):
        pool["input"].put((call, part, list(items[first : first + size]), options))
    found: dict[int, list[object] | Exception] = {}
    with progress_bar(len(items), "texts", shown=shown) as bar:
        while len(found) < len(starts):
            whose, part, output = _next(pool)
            if whose == call:
                found[part] = output
                bar.update(min(size, len(items) - part * size))
    ordered: list[Any] = []
    for part in range(len(starts)):
        output = found[part]
        if isinstance(output, Exception):
            raise output
        ordered.extend(output)
    return ordered


def _next(pool: WorkerPool) -> tuple[int, int, list[object] | Exception]:
    while True:
        try:
            return pool["output"].get(timeout=POLL)
        except queue.Empty:
            dead = [process for process in pool["processes"] if not process.is_alive()]
            if dead:
                codes = ", ".join(str(process.exitcode) for process in dead)
                how = "Stop the pool and start a new one; a script that starts processes needs"
                reason = f"{len(dead)} of {len(pool['processes'])} workers have died (exit code {codes})."
                raise WorkerError(f"{reason} {how} `if __name__ == '__main__':`.") from None


def _work(
    job: Callable[[str | torch.device], Job],
    device: str | torch.device,
    threads: int,
    incoming: "Queue[tuple[int, int, list[object], dict[str, object]]]",
    outgoing: "Queue[tuple[int, int, list[object] | Exception]]",
) -> None:
    """A worker's life."""
    torch.set_num_threads(threads)
    run = job(device)
    while True:
        call, part, items, options = incoming.get()
        try:
            outgoing.put((call, part, run(items, options)))
        except Exception as error:
            outgoing.put((call, part, _portable(error)))


def _check_portable(options: dict[str, object]) -> None:
    """A queue drops what it cannot pickle, and its reader would wait forever."""
    for name, value in options.items():
        try:
            pickle.dumps(value)
        except Exception:
            repair = "A function must be defined at the top of a module."
            raise bad(name, "something that can be sent to another process", value, repair) from None


def _portable(error: Exception) -> Exception:
    """The error, or its text if it does not survive the way to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return WorkerError("".join(traceback.format_exception(error)))
    return error
