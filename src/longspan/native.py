"""The one door to the compiled core, longspan._native: how it is loaded, and how arrays become addresses."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import ModuleType

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from longspan.errors import InputError, bad
from longspan.shapes import Matrix

ABI = 11
LARGEST_HEAD = 1024
SOFTCAPS = 1e-20, 1e20
"""What can be divided by and multiplied with in float32."""
DTYPES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}

View = tuple[int, ...]
"""Address and strides of a tensor, and how many elements lie there."""
Arguments = tuple[list[int], View, View, View, int, list[int], float, float, list[int], float, int, int, str]

_target: ContextVar[str] = ContextVar("longspan_target", default="")  # empty: the best this CPU can run

# A forked child has none of the threads that OpenMP started in its parent: torch would wait for them forever.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))


def core() -> ModuleType | None:
    """The compiled core, None where it is not built; imported on first use."""
    loaded = _loaded()
    return None if isinstance(loaded, str) else loaded


def load() -> ModuleType:
    """The compiled core; an ImportError says why there is none."""
    loaded = _loaded()
    if isinstance(loaded, str):
        raise ImportError(loaded)
    return loaded


@cache
def _loaded() -> ModuleType | str:
    """The core, or what keeps it from being used."""
    try:
        import longspan._native as _native
    except ImportError as error:
        return str(error)
    if _native.abi_version() != ABI:
        return f"longspan._native has ABI {_native.abi_version()}, but {ABI} is needed; reinstall longspan"
    return _native


def targets() -> list[str]:
    """The instruction sets that the core can use on this CPU, the best first; none if it is not built."""
    return [] if (loaded := core()) is None else list(loaded.targets())


@contextmanager
def force_target(name: str | None) -> Iterator[None]:
    """Run the kernels of one instruction set ("scalar", "avx2", "avx512"); None: the best there is."""
    if name is not None and name not in load().targets():
        raise bad("target", f"one of {', '.join(targets())}", name, "Others cannot run on this machine.")
    token = _target.set(name or "")
    try:
        yield
    finally:
        _target.reset(token)


def arguments(
    plan: Sequence[Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: float,
    terms: Sequence[Tensor | None],
    dropout: float,
    seed: Tensor | None,
    softcap: float | None,
) -> Arguments:
    """What the core's `forward` and `backward` both begin with.

    `plan` holds the arrays of csrc/plan_arrays.h, `terms` relative, content and table in contiguous float32.
    Only addresses are passed on, so every tensor must outlive the call.
    """
    relative, _, table = terms
    labelled = table if relative is None else relative
    return (
        [x.data_ptr() for x in plan] + [x.size(0) for x in plan],
        view(q),
        view(k),
        view(v),
        DTYPES[q.dtype],
        [k.size(1), q.size(2), v.size(2)],
        scale,
        softcap or 0.0,
        [*(address(x) for x in terms), 0 if labelled is None else labelled.size(0)],
        dropout,
        0 if seed is None else int(seed) & (2**64 - 1),
        torch.get_num_threads(),
        _target.get(),
    )


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    scales: Tensor | None = None,
    times: Tensor | None = None,
    plus: Tensor | None = None,
    act: int = 0,
    across: bool = False,
    into: Tensor,
) -> None:
    """into = act(x weight' + bias) * times + plus, where `act` is a number of csrc/longspan.h.

    With `scales` the weights are int8, times the scale of their row, and contiguous; `across`, it is
    x weight. Rows of float32, elements of a row side by side. `times` and `plus` may be `into`.
    """
    _check_linear(x, weight, bias, scales, times, plus, across, into)
    addresses = [0 if t is None else t.data_ptr() for t in (x, weight, scales, bias, times, plus, into)]
    strides = [0 if t is None else t.stride(0) for t in (x, weight, times, plus, into)]
    load().linear(
        addresses, [*strides, *x.shape, into.size(1)], act, across, torch.get_num_threads(), _target.get()
    )


def layer_norm(
    x: Tensor, weight: Tensor, bias: Tensor | None, eps: float, *, centered: bool = True, into: Tensor
) -> None:
    """into = the rows of x, normalized; `into` may be x. Not `centered`, their mean is taken to be 0 (RMS).

    Rows of float32, elements of a row side by side.
    """
    rows, width = tuple(x.shape), tuple(x.shape[1:])
    for name, given, shape in (
        ("x", x, rows),
        ("weight", weight, width),
        ("bias", bias, width),
        ("into", into, rows),
    ):
        if given is not None and (x.dim() != 2 or not _are_rows(given, shape)):
            raise _unreadable(name, given, shape)
    if len(x) > 1 and into.stride(0) < x.size(1):
        raise _unreadable("into", into, rows)
    addresses = [0 if t is None else t.data_ptr() for t in (x, weight, bias, into)]
    sizes = [x.stride(0), into.stride(0), x.size(0), x.size(1)]
    load().layer_norm(addresses, sizes, eps, centered, torch.get_num_threads(), _target.get())


def rotate(x: Tensor, cos: Tensor, sin: Tensor, *, back: bool = False) -> None:
    """Turn the halves of each head of x (N, H, D) by the angles of its row, in place; or turn them `back`.

    Float32; elements of a head side by side, rows apart from each other; cos and sin (N, D / 2) contiguous.
    """
    rows, heads, size = x.shape
    table = (rows, size // 2)
    for name, given in (("cos", cos), ("sin", sin)):
        if size % 2 or not _are_rows(given, table) or not given.is_contiguous():
            raise _unreadable(name, given, table)
    apart = (heads <= 1 or x.stride(1) >= size) and (
        rows <= 1 or x.stride(0) >= (heads - 1) * x.stride(1) + size
    )
    if not _are_rows(x, (rows, heads, size)) or not apart:
        raise _unreadable("x", x, (rows, heads, size))
    addresses, sizes = [t.data_ptr() for t in (x, cos, sin)], [x.stride(0), x.stride(1), rows, heads, size]
    load().rotate(addresses, sizes, -1.0 if back else 1.0, torch.get_num_threads(), _target.get())


def reads(x: Tensor) -> bool:
    """Whether the core may be given the address of a tensor: not in a graph that torch compiles or traces.

    Nor are there addresses of shares of a tensor, as FSDP has them, and of what torch.func computes with.
    """
    plain = type(x) in (Tensor, nn.Parameter) and x.device.type == "cpu"
    return plain and not in_a_graph() and not torch._C._are_functorch_transforms_active()


def in_a_graph() -> bool:
    """Whether operations are recorded rather than done."""
    return torch.compiler.is_compiling() or is_traced()


def is_traced() -> bool:
    """Whether torch records operations on tensors that are there, as its exporter to ONNX does."""
    return torch._C._get_tracing_state() is not None


def max_sim(
    queries: Matrix,
    tokens: npt.NDArray[np.int8] | Matrix,
    scales: npt.NDArray[np.float32] | None,
    starts: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
    *,
    into: Matrix,
) -> None:
    """into[p, i] = the largest product of query i with tokens starts[p] to ends[p]; -inf if there are none.

    Without scales tokens are float32. Contiguous arrays; the caller has checked shapes, dtypes and that
    0 <= starts, ends <= len(tokens).
    """
    arrays = (tokens, scales, queries, starts, ends, into)
    addresses = [0 if x is None else x.ctypes.data for x in arrays]
    sizes = [tokens.shape[1], len(queries), len(starts)]
    load().max_sim(addresses, sizes, torch.get_num_threads(), _target.get())


def serves_linear(dtype: torch.dtype) -> bool:
    """Whether the core is built and computes layers with weights of this dtype at least as fast as torch.

    float32: with AVX2 or better; without, ours is plain C++. int8: always.
    """
    loaded = core()
    if loaded is None:
        return False
    return dtype == torch.int8 or (_target.get() or loaded.targets()[0]) != "scalar"


def address(x: Tensor | None) -> int:
    """Where the first element of a contiguous tensor lies; 0 for none."""
    if x is None:
        return 0
    where, count = x.data_ptr(), x.numel()
    if count and (not where or held(x) < count):
        raise bad("tensor", "in memory", f"one of shape {tuple(x.shape)} whose memory was freed")
    return where


def view(x: Tensor) -> View:
    """A tensor of any strides, as the core takes it, which checks that it lies in its memory."""
    return (x.data_ptr(), *x.stride(), held(x))


def held(x: Tensor) -> int:
    """How many elements the memory of x holds from its first one on."""
    return x.untyped_storage().nbytes() // x.itemsize - int(x.storage_offset())


def _check_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    scales: Tensor | None,
    times: Tensor | None,
    plus: Tensor | None,
    across: bool,
    into: Tensor,
) -> None:
    """Refuse what would lead the kernel outside of its tensors."""
    stored = torch.float32 if scales is None else torch.int8
    in_rows = weight.dim() == 2 and (weight.is_contiguous() or (scales is None and weight.stride(1) == 1))
    if weight.dtype is not stored or not in_rows or not weight.is_cpu:
        value = f"{weight.dtype} of shape {tuple(weight.shape)} and strides {weight.stride()}"
        what = "a matrix of float32 in rows" if scales is None else "a contiguous matrix of int8"
        raise bad("weight", f"{what} on the CPU", value)
    outputs, inputs = weight.shape[::-1] if across else weight.shape
    width, rows = (outputs,), (len(x), outputs)
    if not _are_rows(x, (len(x), inputs)):
        raise _unreadable("x", x, (len(x), inputs))
    if not _are_rows(into, rows) or (len(x) > 1 and into.stride(0) < outputs):
        raise _unreadable("into", into, rows)
    if bias is not None and not _are_rows(bias, width):
        raise _unreadable("bias", bias, width)
    for name, other in (("times", times), ("plus", plus)):
        if other is not None and not _are_rows(other, rows):
            raise _unreadable(name, other, rows)
    if scales is not None and not _are_rows(scales, width):
        raise _unreadable("scales", scales, width)


def _are_rows(x: Tensor, shape: tuple[int, ...]) -> bool:
    """Whether the core can read x as rows of this shape: float32, neighbors side by side."""
    beside = shape[-1] <= 1 or x.stride()[-1] == 1
    return x.shape == shape and x.dtype is torch.float32 and beside and x.is_cpu and not x.is_neg()


def _unreadable(name: str, x: Tensor, shape: tuple[int, ...]) -> InputError:
    value = f"{x.dtype} of shape {tuple(x.shape)} and strides {x.stride()} on {x.device}"
    return bad(name, f"float32 of shape {shape} in rows apart from each other on the CPU", value)
