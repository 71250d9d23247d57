"""A model run without numbers: what it would multiply and hold, counted as its own code asks for it."""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from longspan.checkpoints.fit import NothingDrawn
from longspan.layout import Layout
from longspan.models.config import EncoderConfig
from longspan.models.encoders import ENCODERS

_ATEN = torch.ops.aten
_PRODUCTS = {_ATEN.mm, _ATEN.addmm, _ATEN.bmm, _ATEN.baddbmm}
_ACTIVATIONS = {_ATEN.gelu, _ATEN.relu, _ATEN.silu, _ATEN.tanh}
_LIGHT = {_ATEN.native_layer_norm, _ATEN.embedding, _ATEN.copy_, _ATEN.index, _ATEN.add}


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one forward pass takes."""

    parameters: int
    products: int
    "Floating-point operations of matrix products, attention apart."
    activated: int
    "Numbers that go through an activation."
    light: int
    "Numbers that norms, embeddings and copies write."
    held: int
    "Bytes of intermediate results at the highest."
    attends: tuple[tuple[int, int, int, int], ...]
    "Queries, keys, heads and head size of each attention."


def trial(config: EncoderConfig, layout: Layout) -> Work:
    """One forward pass on torch's meta device: shapes only, so it takes no memory and hardly any time.

    >>> from longspan.models.bert import BertConfig
    >>> tiny = BertConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> work = trial(tiny, Layout.packed([5]))
    >>> work.products == 2 * 2 * 5 * (8 * 24 + 8 * 8 + 2 * 8 * 16)
    True
    """
    longest = int(layout.lengths.max(initial=1))
    if config.longest < longest:  # a longer table of positions costs next to nothing
        config = replace(config, positions=longest)
    with torch.device("meta"), NothingDrawn():
        model = ENCODERS[type(config)](config).eval()
        ids = torch.zeros(layout.size, dtype=torch.long)
    watch = _Watch({parameter.untyped_storage()._cdata for parameter in model.parameters()})
    with torch.no_grad(), watch:
        model(ids, layout)
    return Work(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        products=watch.products,
        activated=watch.activated,
        light=watch.light,
        held=watch.most,
        attends=tuple(watch.attends),
    )


@dataclass
class _Watch(TorchDispatchMode):
    """Counts what every operation would do, and the memory that is in use after it."""

    weights: set[int]
    products: int = 0
    activated: int = 0
    light: int = 0
    most: int = 0
    attends: list[tuple[int, int, int, int]] = field(default_factory=list)
    live: dict[int, tuple[StorageWeakRef, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is _ATEN._local_scalar_dense.default:
            return 0  # models look at ids only to check them
        found = func(*args, **(kwargs or {}))
        kind, first = func.overloadpacket, found[0] if isinstance(found, (tuple, list)) else found
        if kind in _PRODUCTS:
            self.products += 2 * first.numel() * args[-2 if kind in (_ATEN.mm, _ATEN.bmm) else 1].shape[-1]
        elif kind in _ACTIVATIONS:
            self.activated += first.numel()
        elif kind in _LIGHT:
            self.light += first.numel()
        elif kind is torch.ops.longspan.attend:
            self.attends.append((len(args[0]), len(args[1]), *args[0].shape[1:]))
        self._hold(found, args)
        return found

    def _hold(self, found: Any, args: Any) -> None:
        moved = args and isinstance(args[0], Tensor) and args[0].device.type != "meta"  # a plan's arrays
        for one in () if moved else found if isinstance(found, (tuple, list)) else (found,):
            storage = one.untyped_storage() if isinstance(one, Tensor) else None
            if storage is not None and storage.device.type == "meta" and storage._cdata not in self.weights:
                self.live[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self.live = {key: held for key, held in self.live.items() if not held[0].expired()}
        self.most = max(self.most, sum(size for _, size in self.live.values()))
