"""A plan as one tensor: what a compiled graph takes, so that a new length is new data and not a new graph."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from longspan.engine.plan import Plan, PlanArrays, array_format
from longspan.errors import bad
from longspan.shapes import IntArray

ALIGNED = 8
"""Words of 64 bits: every array begins at a multiple of 64 bytes, as kernels read fastest."""
HEADER = -(-len(PlanArrays._fields) // ALIGNED) * ALIGNED
"""Words before the first array: how many rows each has."""


@dataclass(frozen=True, eq=False)
class PackedPlan:
    """What `pack` makes of a plan; `attention` takes it like the plan itself."""

    buffer: Tensor
    "(P,) int64: the number of rows of each of the PlanArrays, then their elements."
    label_count: int | None
    "As the plan's."
    shares_keys: ClassVar[bool] = False

    def arrays(self) -> PlanArrays:
        """The plan's arrays, in the memory of the buffer."""
        return unpack(self.buffer)


def pack(plan: Plan, device: torch.device | str = "cpu") -> PackedPlan:
    """The plan as one tensor.

    >>> from longspan.layout import Layout
    >>> from longspan.engine.plan import plan
    >>> from longspan.patterns import Window
    >>> pack(plan(Window(2), Layout.packed([100]), heads=4)).arrays().q_sites.shape
    torch.Size([100, 2])
    """
    if plan.shares_keys:
        raise bad("plan", "one whose keys belong to one document each", "gathered", "Use the plan itself.")
    header = np.zeros(HEADER, np.int64)
    header[: len(plan.arrays)] = [len(array) for array in plan.arrays]
    # By numpy, so that nothing of this becomes part of a graph that is being traced.
    words = np.concatenate([header, *(_words(array.numpy()) for array in plan.arrays)])
    return PackedPlan(torch.from_numpy(words).to(device), plan.label_count)


def unpack(buffer: Tensor) -> PlanArrays:
    """The arrays that `pack` wrote, in the memory of the buffer; what does not fit into it is an error."""
    if buffer.dtype != torch.int64 or buffer.dim() != 1 or not buffer.is_contiguous():
        value = f"{buffer.dtype} {tuple(buffer.shape)}"
        raise bad("plan", "a contiguous int64 tensor of one dimension", value, "Use pack(plan).buffer.")
    counts = buffer[: len(PlanArrays._fields)].tolist() if len(buffer) >= HEADER else [-1]
    arrays, start = [], HEADER
    for name, count in zip(PlanArrays._fields, counts, strict=False):
        dtype, row = array_format(name)
        size = max(count, 0) * prod(row)
        stop = start + _rounded(-(-size * dtype.itemsize // 8))
        if count < 0 or stop > len(buffer):
            raise bad("plan", "a tensor that holds all arrays of a plan", f"{len(buffer)} words")
        arrays.append(buffer[start:stop].view(dtype)[:size].view(count, *row))
        start = stop
    return PlanArrays(*arrays)


def _words(array: IntArray) -> IntArray:
    """An array's elements as int64, zeros after the last."""
    words = np.zeros(_rounded(-(-array.nbytes // 8)), np.int64)
    words.view(array.dtype)[: array.size] = array.reshape(-1)
    return words


def _rounded(words: int) -> int:
    return -(-words // ALIGNED) * ALIGNED


pytree.register_pytree_node(
    PackedPlan,
    lambda packed: ([packed.buffer], packed.label_count),
    lambda leaves, label_count: PackedPlan(*leaves, label_count),  # type: ignore[call-arg]
    serialized_type_name="longspan.PackedPlan",
    flatten_with_keys_fn=lambda packed: (
        [(pytree.GetAttrKey("buffer"), packed.buffer)],
        packed.label_count,
    ),
)
