"""Several processes that train one model: `torchrun` starts them, each computes its share of every step."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method
from torch.distributed.rendezvous import rendezvous
from torch.distributed.tensor import DTensor, distribute_tensor

from longspan.errors import bad
from longspan.nn.layers import stacks

T = TypeVar("T")
BUCKET = 1 << 25
"""Bytes of gradients that are sent together."""


@dataclass(frozen=True)
class Ranks:
    """This process among all; alone it sends nothing."""

    rank: int = 0
    count: int = 1
    sharded: bool = False
    "Every process holds a share of each weight (FSDP)."

    @classmethod
    def of(cls, model: nn.Module) -> "Ranks":
        """The processes that compute a model together."""
        if not dist.is_initialized():
            return cls()
        return cls(dist.get_rank(), dist.get_world_size(), isinstance(model, FSDPModule))

    @property
    def first(self) -> bool:
        """Whether this process writes files."""
        return self.rank == 0

    def share(self, batches: int) -> list[tuple[int, bool]]:
        """The micro-batches that are computed here, and whether they count.

        Processes that hold shares of weights must compute equally many: what is missing is computed again.
        """
        own = [(number, True) for number in range(self.rank, batches, self.count)]
        if self.sharded and len(own) < -(-batches // self.count):
            own.append((0, False))
        return own

    def sum(self, values: Sequence[float]) -> list[float]:
        """The sums of numbers over all processes."""
        if self.count == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(total)
        return [float(value) for value in total]

    def told(self, values: Sequence[float]) -> list[float]:
        """The numbers of the first process, in all of them."""
        if self.count == 1:
            return list(values)
        told = torch.tensor(values, dtype=torch.float64)
        dist.broadcast(told, 0)
        return [float(value) for value in told]

    def joined(self, values: list[T]) -> list[T]:
        """The lists of all processes, one after the other."""
        if self.count == 1:
            return values
        lists: list[list[T]] = [[] for _ in range(self.count)]
        dist.all_gather_object(lists, values)
        return [value for one in lists for value in one]

    def sum_gradients(self, gradients: Sequence[Tensor]) -> None:
        """Make all gradients the sums over all processes; those of shares are already."""
        if self.count == 1 or self.sharded:
            return
        for bucket in _buckets(gradients):
            flat = _flatten_dense_tensors(bucket)
            dist.all_reduce(flat)
            for gradient, whole in zip(bucket, _unflatten_dense_tensors(flat, bucket), strict=True):
                gradient.copy_(whole)

    def agree(self, model: nn.Module) -> None:
        """Let all processes begin with the weights of the first."""
        if self.count > 1:
            for tensor in (*model.parameters(), *model.buffers()):
                dist.broadcast(tensor.data, 0)

    def wait(self) -> None:
        """Until all processes are here."""
        if self.count > 1:
            dist.barrier()


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one dtype, so many that sending them is worth it."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        size = sum(one.nbytes for one in bucket)
        if bucket and (size + tensor.nbytes > BUCKET or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket = []
        bucket.append(tensor)
    yield bucket


def is_first() -> bool:
    """Whether this is the process that writes files, of those that `torchrun` started."""
    return os.environ.get("RANK", "0") == "0"


@contextmanager
def connected() -> Iterator[None]:
    """Inside the block the processes that `torchrun` started can talk to each other."""
    own = int(os.environ.get("WORLD_SIZE", "1")) > 1 and not dist.is_initialized()
    if own:
        backend = "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
            backend = "cpu:gloo,cuda:nccl"  # what is counted lies on the CPU
        store, rank, count = next(rendezvous("env://"))
        meeting = (store.add("meetings", 1) - 1) // count  # all have met before the first one meets again
        place = PrefixStore(f"meeting-{meeting}", store)  # as addresses of earlier ones are still there
        dist.init_process_group(backend, store=place, rank=rank, world_size=count)
    try:
        yield
    finally:
        if own:
            dist.destroy_process_group()


def shard(model: nn.Module) -> None:
    """Let every process hold a share of the weights, which are gathered layer by layer (FSDP2)."""
    if not dist.is_initialized():
        raise bad("fsdp", "False in a single process", True, "Start several: torchrun --nproc-per-node N ...")
    mesh = init_device_mesh(next(model.parameters()).device.type, (dist.get_world_size(),))
    exact = MixedPrecisionPolicy(reduce_dtype=torch.float32)
    for stack in stacks(model):
        for layer in stack:
            fully_shard(layer, mesh=mesh, mp_policy=exact)
    fully_shard(model, mesh=mesh, mp_policy=exact)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)  # which gloo has, too

    vars(model)["computing"] = partial(_computing, model)
    register_fsdp_forward_method(model, "computing")


def _computing(model: nn.Module, function: Callable[..., T], *rest: object) -> T:
    return function(model, *rest)


def computed(function: Callable[..., T], model: nn.Module, *rest: object) -> T:
    """function(model, *rest); if weights are shared in a forward pass, so that parts may be called."""
    inside: Callable[..., T] = vars(model).get("computing", partial(_computing, model))
    return inside(function, *rest)


def gathered(tensor: Tensor) -> Tensor:
    """A whole tensor, of whose share every process calls this."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def shared(value: Tensor, like: Tensor) -> Tensor:
    """A whole tensor as `like` is: the share of this process, if that is one of the same shape."""
    if not isinstance(like, DTensor) or isinstance(value, DTensor) or value.shape != like.shape:
        return value
    return distribute_tensor(value, like.device_mesh, like.placements)
