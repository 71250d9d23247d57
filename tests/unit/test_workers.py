"""Several processes encode one list: the same vectors in the same order, and errors that arrive."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from longspan import workers
from longspan.errors import InputError
from longspan.reader import Reader
from longspan.workers import WorkerError, WorkerPool
from unit.tasks.tiny import CORPUS, LONG, reader

TEXTS = [f"{text} {i}" for i, text in enumerate(CORPUS * 5)]


@pytest.fixture(scope="module")
def found() -> Reader:
    return reader("longformer", "encode")


@pytest.fixture(scope="module")
def pool(found: Reader) -> Iterator[WorkerPool]:
    started = found.start_multi_process_pool(["cpu", "cpu"])
    yield started
    found.stop_multi_process_pool(started)


@pytest.mark.parametrize("chunk_size", [None, 1, 4, 100])
def test_vectors_are_the_same_and_in_order(found: Reader, pool: WorkerPool, chunk_size: int | None) -> None:
    expected = found.encode(TEXTS)
    np.testing.assert_allclose(found.encode(TEXTS, pool=pool, chunk_size=chunk_size), expected, atol=1e-6)
    np.testing.assert_allclose(
        found.encode_multi_process(TEXTS, pool, chunk_size=chunk_size), expected, atol=1e-6
    )


def test_every_kind_of_result_comes_from_a_pool(found: Reader, pool: WorkerPool) -> None:
    for options in (
        {"output_value": "token_embeddings"},
        {"truncate_dim": 3, "convert_to_tensor": True},
        {"precision": "ubinary"},
        {"prompt": "the "},
    ):
        alone, shared = (found.encode(TEXTS[:3], pool=each, **options) for each in (None, pool))
        for one, other in zip(alone, shared, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    assert found.encode("a", pool=pool).shape == (16,)
    assert found.encode([], pool=pool).shape == (0, 16)
    detailed = found.encode_with_details([LONG], pool=pool, overflow="window")
    assert detailed[0]["windows"] > 1


def test_an_error_names_the_text_that_it_is_about_and_the_pool_lives_on(
    found: Reader, pool: WorkerPool
) -> None:
    with pytest.raises(InputError, match=r"`texts\[14\]` must be at most 64 tokens long"):
        found.encode([*TEXTS[:14], LONG], pool=pool, chunk_size=3)
    with pytest.raises(InputError, match=r"`chunk_size` must be at least 1, but is 0"):
        found.encode(TEXTS, pool=pool, chunk_size=0)
    with pytest.raises(InputError, match=r"`global_tokens` must be something that can be sent to an"):
        found.encode(TEXTS, pool=pool, global_tokens=lambda encoding: [0])
    assert found.encode(TEXTS[:2], pool=pool).shape == (2, 16)


def test_what_an_interrupted_call_left_is_not_taken_for_an_answer(found: Reader, pool: WorkerPool) -> None:
    pool["output"].put((-1, 0, ["not a vector"]))
    expected = found.encode(TEXTS[:4])
    np.testing.assert_allclose(found.encode(TEXTS[:4], pool=pool, chunk_size=1), expected, atol=1e-6)


def test_devices_make_a_pool_for_one_call_and_a_dead_worker_is_told(found: Reader) -> None:
    np.testing.assert_allclose(found.encode(TEXTS, device=["cpu"]), found.encode(TEXTS), atol=1e-6)
    doomed = found.start_multi_process_pool(["cpu"])
    os.kill(doomed["processes"][0].pid or 0, signal.SIGKILL)
    with pytest.raises(WorkerError, match=r"1 of 1 workers have died \(exit code -9\)\. Stop the pool"):
        found.encode(TEXTS, pool=doomed)
    found.stop_multi_process_pool(doomed)


def test_an_error_that_cannot_travel_is_sent_as_text() -> None:
    class Local(Exception):
        pass

    error: Any = workers._portable(Local("lost"))
    assert isinstance(error, WorkerError)
    assert "lost" in str(error)
    assert isinstance(workers._portable(InputError("kept")), InputError)


def test_workers_are_as_many_as_threads_but_not_more_than_four() -> None:
    assert 1 <= len(workers.cpus()) <= 4
