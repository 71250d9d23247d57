"""What attention may be given. An operator can be called with any tensors, so nothing is taken on trust."""

from math import inf

import torch
from torch import Tensor

from longspan.engine.backends.base import DTYPES, Problem, arithmetic
from longspan.engine.plan import PlanArrays
from longspan.errors import InputError, bad


def check_tensors(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raises unless all three are of shape (N, H, D), of one known dtype, and on one device."""
    for name, x in (("q", q), ("k", k), ("v", v)):
        if not isinstance(x, Tensor):
            raise bad(name, "a tensor of shape (N, H, D)", type(x).__name__)
        if x.dim() != 3:
            raise bad(name, "of shape (N, H, D)", tuple(x.shape), "Lay the documents of a batch end to end.")
        if x.layout != torch.strided:
            raise bad(name, "an ordinary (strided) tensor", str(x.layout), f"Use {name}.to_dense().")
        check_like(name, x, q)
    if q.dtype not in DTYPES:
        raise bad("q", "float32, bfloat16, float16 or float64", q.dtype)


def check_like(name: str, x: Tensor, q: Tensor) -> None:
    """Raises unless x has the dtype of q and is where q is."""
    if x.dtype != q.dtype:
        raise bad(name, f"of dtype {q.dtype} like `q`", x.dtype, f"Use {name}.to(q.dtype).")
    if x.device != q.device:
        raise bad(name, f"on {q.device} like `q`", str(x.device), f"Use {name}.to(q.device).")


def check_groups(heads: int, key_heads: int) -> None:
    """Raises unless the query heads fall evenly to the key heads."""
    if heads % key_heads if key_heads else heads:
        raise bad("k", f"of heads that divide the {heads} of `q`", key_heads)


def check_softcap(softcap: float) -> None:
    """Raises unless scores can be capped by it."""
    if not isinstance(softcap, (int, float)) or not 0 < softcap < inf:
        raise bad("softcap", "a number above 0", softcap, "Leave it out for no cap.")


def check_problem(problem: Problem) -> None:
    """Raises unless shapes, dtypes and devices fit together; what the plan's arrays say is not looked at."""
    check_tensors(problem.q, problem.k, problem.v)
    (rows, heads, size), (keys, key_heads, _) = problem.q.shape, problem.k.shape
    if size < 1:
        raise bad("q", "of head size at least 1", size)
    check_groups(heads, key_heads)
    if problem.v.shape[2] < 1:
        raise bad("v", "of head size at least 1", problem.v.shape[2])
    if problem.softcap is not None:
        check_softcap(problem.softcap)
    problem.arrays.check(rows, keys, heads)
    check_devices(problem)
    labels = next((len(x) for x in (problem.relative, problem.table) if x is not None), 0)
    shapes = {
        "k": (keys, key_heads, size),
        "v": (keys, key_heads, problem.v.shape[2]),
        "relative": (labels, heads, size),
        "content": (heads, size),
        "table": (labels, heads),
    }
    for name, shape in shapes.items():
        x = getattr(problem, name)
        if x is not None:
            _check_shape(name, x, shape)
            check_like(name, x, problem.q)
    if problem.content is not None and problem.relative is None:
        raise bad("content", "given with `relative`", "given alone")
    _check_dropout(problem)


def check_devices(problem: Problem, **others: Tensor | None) -> None:
    """Raises unless all tensors are where q is, but for the seed, which may stay on the CPU."""
    arrays = problem.arrays  # or what they are packed in, where a graph is traced
    plan = arrays._asdict() if isinstance(arrays, PlanArrays) else {"plan": arrays[0]}
    named = problem._asdict() | plan | others
    for name, x in named.items():
        if isinstance(x, Tensor) and x.device != problem.q.device and name != "seed":
            raise bad(name, f"on {problem.q.device} like `q`", str(x.device), f"Use {name}.to(q.device).")


def check_results(
    problem: Problem, out: Tensor, lse: Tensor, grad_out: Tensor, grad_lse: Tensor | None
) -> None:
    """Raises unless these are results of `problem` and gradients of such results."""
    shape = (*problem.q.shape[:2], problem.v.shape[2])
    for name, x in (("out", out), ("grad_out", grad_out)):
        _check_shape(name, x, shape)
        check_like(name, x, problem.q)
    dtype = arithmetic(problem.q.dtype)
    for name, row in (("lse", lse), ("grad_lse", grad_lse)):
        if row is not None:
            _check_shape(name, row, shape[:2])
            if row.dtype != dtype:
                raise bad(name, f"{dtype} like the arithmetic", row.dtype, f"Use {name}.to({dtype}).")
    check_devices(problem, lse=lse, grad_lse=grad_lse)


def check_values(arrays: PlanArrays, labels: int | None) -> None:
    """Raises unless the arrays name only rows, tiles, masks and labels (below `labels`) that exist.

    The portable backends need it: an index below 0 would silently find something else.
    """
    tiles, keys, masks = len(arrays.q_rows), len(arrays.k_rows), len(arrays.masks)
    key, mask, times, label = arrays.entries.unbind(1)
    _check_range("head_class", arrays.head_class, 0, len(arrays.class_start) - 1)
    _check_cut("class_start", arrays.class_start, tiles)
    _check_cut("entry_start", arrays.entry_start, len(arrays.entries))
    _check_range("q_rows", arrays.q_rows, -1, len(arrays.q_sites))
    _check_range("k_rows", arrays.k_rows, -1, len(arrays.k_positions))
    _check_range("key tile of `entries`", key, 0, keys)
    _check_range("mask of `entries`", mask, -1, masks)
    _check_range("multiplicity of `entries`", times, 1, 2**31)
    for name in ("q_rows", "k_rows"):
        real = getattr(arrays, name) >= 0
        if bool((real[:, 1:] & ~real[:, :-1]).any()):
            raise bad(name, "padded with -1 after the last row only", "padded before it")
    _check_coverage(arrays)
    if labels is None:
        return
    _check_cut("label_start", arrays.label_start, len(arrays.label_list))
    _check_range("label_list", arrays.label_list, 0, labels)
    _check_range("label tile of `entries`", label, 0, len(arrays.label_tiles))
    _check_ranks(arrays)


def _check_coverage(arrays: PlanArrays) -> None:
    """Each class holds every query once: a row that none holds would never be written."""
    queries = len(arrays.q_sites)
    for first, last in zip(arrays.class_start[:-1].tolist(), arrays.class_start[1:].tolist(), strict=True):
        rows = arrays.q_rows[first:last].flatten()
        count = torch.bincount(rows[rows >= 0], minlength=queries)
        if bool((count != 1).any()):
            raise bad("q_rows", "holding each query once in each class", "holding some never or twice")


def _check_ranks(arrays: PlanArrays) -> None:
    """Ranks lie in the list of the class whose entries use them; those of ramps may run past it by a tile."""
    owner = torch.arange(len(arrays.q_rows), device=arrays.q_rows.device)
    tile = torch.repeat_interleave(owner, arrays.entry_start.diff())
    kind = torch.searchsorted(arrays.class_start, tile.to(torch.int32), right=True) - 1
    label = arrays.entries[:, 3]
    ramp = arrays.label_kind[label] == 1
    lowest, highest = arrays.label_tiles.flatten(1).aminmax(dim=1)
    slack = torch.where(ramp, 64, 0)
    size = arrays.label_start.diff()[kind]
    outside = (lowest[label] < -slack) | (highest[label] >= size + 2 * slack)
    if bool(outside.any()):
        raise bad("label_tiles", "of ranks in the list of their class", "of ranks outside it")


def _check_dropout(problem: Problem) -> None:
    if not 0 <= problem.dropout < 1:
        raise bad("dropout", "at least 0 and less than 1", problem.dropout)
    if problem.seed is None:
        if problem.dropout:
            raise bad("seed", "an int64 scalar tensor where `dropout` is given", None)
    elif problem.seed.dtype != torch.int64 or problem.seed.dim():
        raise bad(
            "seed", "an int64 scalar tensor", f"{problem.seed.dtype} of shape {tuple(problem.seed.shape)}"
        )


def _check_shape(name: str, x: Tensor, shape: tuple[int, ...]) -> None:
    if x.shape != shape:
        raise bad(name, f"of shape {shape}", tuple(x.shape))
    if x.layout != torch.strided:
        raise bad(name, "an ordinary (strided) tensor", str(x.layout), f"Use {name}.to_dense().")


def _check_range(name: str, x: Tensor, low: int, high: int) -> None:
    """Raises unless low <= x < high."""
    if x.numel() and not low <= int(x.min()) <= int(x.max()) < high:
        worst = int(x.min()) if int(x.min()) < low else int(x.max())
        raise bad(name, f"from {low} to {high - 1}", worst, "Use a Plan's arrays.")


def _check_cut(name: str, x: Tensor, end: int) -> None:
    """Raises unless x cuts the range from 0 to `end` into pieces."""
    if int(x[0]) != 0 or int(x[-1]) != end or bool((x[1:] < x[:-1]).any()):
        raise InputError(f"`{name}` must ascend from 0 to {end}, but does not. Use a Plan's arrays.")
