"""Looking on: someone is told of each attention that is computed, before it is."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

Watcher = Callable[..., None]
"""Takes q, k, plan, scale, terms and softcap of an attention, and whether it is `partial`, to be merged."""
_watcher: ContextVar[Watcher | None] = ContextVar("longspan_attention_watcher", default=None)


def tell(*tensors: Any, **how: Any) -> None:
    """Tell whoever looks on, if somebody does; a compiled graph is not looked at."""
    watcher = None if torch.compiler.is_dynamo_compiling() else _watcher.get()
    if watcher is not None:
        watcher(*tensors, **how)


def looked_on() -> bool:
    """Whether somebody wants to see each attention as a whole."""
    return _watcher.get() is not None


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """The watcher is told of each attention of this thread while the block runs."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)
