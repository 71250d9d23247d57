"""A forward pass without numbers: what a model multiplies and holds, counted as its own code asks for it."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from longspan.checkpoints.matching import NoInit
from longspan.families.config import EncoderConfig
from longspan.layout import Layout

_ATEN = torch.ops.aten
_PRODUCTS = {_ATEN.mm, _ATEN.addmm, _ATEN.bmm, _ATEN.baddbmm}
_ACTIVATIONS = {_ATEN.gelu, _ATEN.relu, _ATEN.silu, _ATEN.tanh}
_LIGHT = {_ATEN.native_layer_norm, _ATEN.embedding, _ATEN.copy_, _ATEN.index, _ATEN.add}


@dataclass(kw_only=True)
class Work:
    """What one forward pass takes; attention is counted apart, from its plans."""

    parameters: int = 0
    linear_flops: int = 0
    "Floating-point operations of matrix products."
    activated: int = 0
    "Numbers that go through an activation."
    light: int = 0
    "Numbers that norms, embeddings and copies write."
    activation_bytes: int = 0
    "Memory of intermediate results at the highest."
    attentions: list[tuple[int, int, int, int]] = field(default_factory=list)
    "Queries, keys, heads and head size of each attention, in order."


def dry_run(config: EncoderConfig, layout: Layout) -> Work:
    """One forward pass on torch's meta device: shapes only, so it takes no memory and hardly any time.

    >>> from longspan.families.bert.model import BertConfig
    >>> tiny = BertConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> work = dry_run(tiny, Layout.packed([5]))
    >>> work.linear_flops == 2 * 2 * 5 * (8 * 24 + 8 * 8 + 2 * 8 * 16)
    True
    """
    longest = int(layout.lengths.max(initial=1))
    if config.longest < longest:  # a longer table of positions costs next to nothing
        config = replace(config, positions=longest)
    with torch.device("meta"), NoInit():
        model = config.backbone().eval()
        ids = torch.zeros(layout.size, dtype=torch.long)
    work = Work(parameters=sum(parameter.numel() for parameter in model.parameters()))
    weights = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    with torch.no_grad(), _Counter(work, weights):
        model(ids, layout)
    return work


@dataclass
class _Counter(TorchDispatchMode):
    """Counts what every operation would do, and the memory that is in use after it."""

    work: Work
    weights: set[int]
    live: dict[int, tuple[StorageWeakRef, int]] = field(default_factory=dict)
    waiting: list[Tensor] = field(default_factory=list)
    "What was made last: no memory of its own if it is copied to its place, where the kernel writes it."

    def __post_init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(
        self,
        func: OpOverload[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        if func is _ATEN._local_scalar_dense.default:
            return 0  # models look at ids only to check them
        result = func(*args, **(kwargs or {}))
        inputs = [arg for arg in args if isinstance(arg, Tensor)]
        outputs = [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]
        kind, written = func.overloadpacket, outputs[0].numel() if outputs else 0
        if kind in _PRODUCTS:
            self.work.linear_flops += 2 * written * inputs[-1].shape[-2]
        elif kind in _ACTIVATIONS:
            self.work.activated += written
            return result  # which the kernel writes in place
        elif kind in _LIGHT:
            self.work.light += written
        elif kind is torch.ops.longspan.attend:
            rows, heads, size = inputs[0].shape
            self._attends(rows, len(inputs[1]), heads, size)
        if not inputs or inputs[0].device.type == "meta":  # not a plan's arrays on their way
            self._hold([] if kind is _ATEN.copy_ else self.waiting)
            self.waiting = outputs
        return result

    def _attends(self, queries: int, keys: int, *sizes: int) -> None:
        """Another attention, or more rows of the last one, if that has not had all of its rows yet."""
        before, *same = self.work.attentions[-1] if self.work.attentions else (keys, 0, 0, 0)
        if same == [keys, *sizes] and before < keys and before + queries <= keys:
            self.work.attentions.pop()
            queries += before
        self.work.attentions.append((queries, keys, *sizes))  # type: ignore[arg-type]

    def _hold(self, outputs: list[Tensor]) -> None:
        for storage in (tensor.untyped_storage() for tensor in outputs):
            if storage.device.type == "meta" and storage._cdata not in self.weights:
                self.live[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.live = {key: held for key, held in self.live.items() if not held[0].expired()}
        used = sum(size for _, size in self.live.values())
        self.work.activation_bytes = max(self.work.activation_bytes, used)
