"""Operators called with anything at all: a clear error or the right result, never a read outside a tensor.

Every tensor ends where memory that nobody may read begins, and the calls are made in a child process, so that
a kernel that reads too far kills the child, which fails the test.
"""

import ctypes
import mmap
import os
import random
import signal
import traceback
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from longspan import native
from longspan.engine.labels import ClippedDistance
from longspan.engine.plan import PlanArrays, plan
from longspan.errors import LongspanError
from longspan.layout import Layout
from longspan.patterns import GlobalTokens, Window

ROWS, HEADS, KEY_HEADS, SIZE, VALUE_SIZE, LIMIT = 75, 6, 3, 5, 7, 4
NAMES = (
    *("q", "k", "v", "plan", "scale", "relative", "content", "table", "dropout", "seed"),
    *("softcap", "backend"),
)
GIVEN = ("grad_out", "grad_lse", "out", "lse")
BACKENDS = ["", "tiled", "dense"] + ["native"] * (native.core() is not None)
Arguments = dict[str, Any]


def at_the_edge(x: Tensor) -> Tensor:
    """A contiguous copy whose last element is followed by memory that cannot be read."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    pages = -(-max(x.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
    start = libc.mmap(None, pages + mmap.PAGESIZE, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    assert libc.mprotect(start + pages, mmap.PAGESIZE, 0) == 0
    memory = (ctypes.c_byte * max(x.nbytes, 1)).from_address(start + pages - max(x.nbytes, 1))
    if not x.numel():
        return x.clone()
    return torch.frombuffer(memory, dtype=x.dtype).view(x.shape).copy_(x)


def good(backend: str, dtype: torch.dtype = torch.float32) -> tuple[Arguments, Arguments]:
    """Arguments of the forward operator, and what the backward operator takes besides."""
    rows = Layout.packed([ROWS - 5, 5], marked=[[0], []])
    made = plan(Window(4) | GlobalTokens(), rows, heads=HEADS, labels=ClippedDistance(LIMIT))
    labels = 2 * LIMIT + 1
    shapes = {"relative": (labels, HEADS, SIZE), "content": (HEADS, SIZE), "table": (labels, HEADS)}
    shapes |= {"q": (ROWS, HEADS, SIZE), "k": (ROWS, KEY_HEADS, SIZE), "v": (ROWS, KEY_HEADS, VALUE_SIZE)}
    draw = torch.Generator().manual_seed(5)
    tensors = {name: torch.randn(shape, generator=draw).to(dtype) for name, shape in shapes.items()}
    arrays = [at_the_edge(array) for array in made.arrays]
    numbers = {"scale": 0.5, "dropout": 0.25, "seed": torch.tensor(3), "softcap": None, "backend": backend}
    forward = {name: at_the_edge(x) for name, x in tensors.items()} | {"plan": arrays} | numbers
    out, lse = torch.ops.longspan.attend(*(forward[name] for name in NAMES))
    backward = {"grad_out": out, "grad_lse": lse, "out": out, "lse": lse}
    return forward, {name: at_the_edge(x) for name, x in backward.items()}


def call(forward: Arguments, backward: Arguments) -> list[Tensor]:
    """Both operators."""
    given = [forward[name] for name in NAMES]
    gradients = torch.ops.longspan.attend_backward(*(backward[name] for name in GIVEN), *given)
    return [*torch.ops.longspan.attend(*given), *gradients]


def in_a_child(work: Callable[[], None]) -> None:
    """Run `work` where a crash does no harm, and fail with what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        torch.set_num_threads(1)
        try:
            work()
            os._exit(0)
        except BaseException:
            os.write(writing, traceback.format_exc().encode()[-4000:])
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as report:
        said = report.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, said or f"the child was killed by signal {status & 127}"


def refused(forward: Arguments, backward: Arguments, what: str) -> None:
    try:
        call(forward, backward)
    except (LongspanError, ValueError):
        return
    raise AssertionError(f"accepted: {what}")


def faulty_tensors(x: Tensor) -> dict[str, Tensor]:
    """What no operator may accept in the place of x."""
    other = torch.float64 if x.dtype != torch.float64 else torch.float32
    return {
        "shorter": at_the_edge(x[:-1].clone()),
        "empty": x[:0],
        "without its last axis": at_the_edge(x[..., 0].clone()),
        "of one more axis": x[None],
        "of another dtype": at_the_edge(x.to(other)),
        "bfloat16": at_the_edge(x.to(torch.bfloat16)),
        "bool": x.bool(),
        "complex": x.to(torch.complex64),
        "sparse": x.to_sparse(),
        "on another device": x.to("meta"),
        "narrower": at_the_edge(x[..., :-1].clone()),
        "wider": torch.cat([x, x], -1),
    }


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_that_do_not_fit_are_refused(backend: str) -> None:
    def work() -> None:
        forward, backward = good(backend)
        for name in ("q", "k", "v", "relative", "content", "table"):
            for what, x in faulty_tensors(forward[name]).items():
                refused(forward | {name: x}, backward, f"{name} {what}")
        for heads in (0, 4, 5, 12):
            k, v = (at_the_edge(torch.zeros(ROWS, heads, size)) for size in (SIZE, VALUE_SIZE))
            refused(forward | {"k": k, "v": v}, backward, f"{heads} key heads")
        for name in "kv":
            other = at_the_edge(forward[name][:, :1].clone())
            refused(forward | {name: other}, backward, f"one head of {name}")
        for name in GIVEN:
            for what, x in faulty_tensors(backward[name]).items():
                refused(forward, backward | {name: x}, f"{name} {what}")
        for softcap in (0.0, -1.0, float("nan"), float("inf")):
            refused(forward | {"softcap": softcap}, backward, f"softcap {softcap}")
        for fault in ({"dropout": -0.1}, {"dropout": 1.0}, {"dropout": float("nan")}, {"seed": None}):
            refused(forward | fault, backward, str(fault))
        for seed in (torch.tensor(1.5), torch.tensor([1, 2]), torch.tensor(1, dtype=torch.int32)):
            refused(forward | {"seed": seed}, backward, f"seed {seed}")
        refused(forward | {"relative": None}, backward, "content alone")
        refused(forward | {"backend": "fast"}, backward, "an unknown backend")

    in_a_child(work)


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_of_a_plan_that_do_not_fit_are_refused(backend: str) -> None:
    def work() -> None:
        forward, backward = good(backend)
        for number, name in enumerate(PlanArrays._fields):
            array = forward["plan"][number]
            faults = {
                "shorter": at_the_edge(array[:-1].clone()),
                "longer": torch.cat([array, array[-1:]]),
                "of one more axis": array[None],
                "int16": array.to(torch.int16),
                "float": array.float(),
                "on another device": array.to("meta"),
            }
            if array.dim() > 1:
                faults["not contiguous"] = array.t().contiguous().t() if array.dim() == 2 else array.mT
            for what, x in faults.items():
                plans = [*forward["plan"][:number], x, *forward["plan"][number + 1 :]]
                free = name in ("masks", "label_tiles", "entries", "k_rows", "q_rows", "label_list")
                if what in ("shorter", "longer") and free and _still_fits(name, what):
                    continue
                refused(forward | {"plan": plans}, backward, f"{name} {what}")
        refused(forward | {"plan": forward["plan"][:-1]}, backward, "one array less")
        refused(forward | {"plan": []}, backward, "no arrays")

    in_a_child(work)


def _still_fits(name: str, what: str) -> bool:
    """A longer pool of tiles and masks is a plan as well: nothing has to use all of it."""
    return what == "longer" and name in ("masks", "k_rows")


@pytest.mark.parametrize("backend", BACKENDS)
def test_arrays_that_name_what_is_not_there_are_refused(backend: str) -> None:
    wrong = {
        "head_class": (-1, 99),
        "class_start": (-1, 1, 99),
        "q_rows": (-2, ROWS, 2**31 - 1, 3),
        "k_rows": (-2, ROWS, -(2**31)),
        "entry_start": (-1, 1, 2**31 - 1),
        "entries": (-2, 2**31 - 1),
        "label_start": (-1, 1, 99),
        "label_list": (-1, 2 * LIMIT + 1, 2**31 - 1),
        "label_tiles": (-999, 2**31 - 1),
    }

    def work() -> None:
        forward, backward = good(backend)
        for name, values in wrong.items():
            number = PlanArrays._fields.index(name)
            for value in values:
                array = forward["plan"][number].clone()
                array.view(-1)[0] = value
                plans = [*forward["plan"][:number], at_the_edge(array), *forward["plan"][number + 1 :]]
                refused(forward | {"plan": plans}, backward, f"{name} with {value}")

    in_a_child(work)


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_strides_and_sign_bits_change_nothing(backend: str, dtype: torch.dtype) -> None:
    def work() -> None:
        forward, backward = good(backend, dtype)
        expected = call(forward, backward)
        chance = random.Random(7)
        for _ in range(12):
            changed = forward | {name: _restrided(forward[name], chance) for name in "qkv"}
            terms = {name: _restrided(forward[name], chance) for name in ("relative", "content", "table")}
            given = {name: _restrided(x, chance) for name, x in backward.items()}
            for got, want in zip(call(changed | terms, given), expected, strict=True):
                torch.testing.assert_close(got, want)

    in_a_child(work)


def _restrided(x: Tensor, chance: random.Random) -> Tensor:
    """The same values in another order of memory, with gaps, off alignment, or with a view's sign bit."""
    kind = chance.randrange(4)
    if kind == 0 and x.dtype == torch.float32:
        return torch.complex(x, -x).conj().imag  # real numbers that torch keeps with the wrong sign
    if kind == 1:
        axes = chance.sample(range(x.dim()), x.dim())
        return at_the_edge(x.permute(axes).contiguous()).permute([axes.index(a) for a in range(x.dim())])
    if kind == 2:
        wide = torch.full((*x.shape[:-1], x.shape[-1] + 3), torch.nan, dtype=x.dtype)
        wide[..., 2:-1] = x
        return wide[..., 2:-1]
    return x.clone()


@pytest.mark.skipif(native.core() is None, reason="the native core is not built")
def test_memory_that_was_freed_is_refused() -> None:
    def work() -> None:
        for name in ("q", "k", "v", "relative", "table"):
            for size in (0, 40):
                forward, backward = good("native")
                x = forward[name].clone()
                x.untyped_storage().resize_(size)
                refused(forward | {name: x}, backward, f"{name} with {size} bytes")

    in_a_child(work)


@pytest.mark.skipif(native.core() is None, reason="the native core is not built")
def test_gradients_of_keys_that_documents_share_are_refused() -> None:
    cross = plan(Window(9), Layout.packed([4, 4]), heads=1)
    shared = cross.gathered(torch.tensor([0, 1, 2, 3, 0, 1, 2, 3]).numpy(), 4)
    q, k = torch.randn(8, 1, 5), torch.randn(4, 1, 5)
    given = (q, k, k, list(shared.arrays), 1.0, None, None, None, 0.0, None, None, "native")
    out, lse = torch.ops.longspan.attend(*given)
    with pytest.raises(ValueError, match="must not let documents share a key"):
        torch.ops.longspan.attend_backward(out, None, out, lse, *given)


def test_no_heads_and_no_rows_are_served() -> None:
    for queries, keys in ((0, 0), (0, 5), (5, 0)):
        made = plan(Window(3), Layout.packed([queries]), Layout.packed([keys]), heads=2)
        for backend in BACKENDS:
            q, k = torch.ones(queries, 2, 3), torch.ones(keys, 2, 3)
            given = (q, k, k, list(made.arrays), 1.0, None, None, None, 0.0, None, None, backend)
            out, lse = torch.ops.longspan.attend(*given)
            assert torch.equal(out, torch.zeros(queries, 2, 3))
            assert torch.equal(lse, torch.full((queries, 2), -torch.inf))
            gradients = torch.ops.longspan.attend_backward(out, None, out, lse, *given)
            assert all(not gradient.any() for gradient in gradients)
