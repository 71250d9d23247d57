"""Which calls the kernels serve, and the masks of transformers as layouts."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longspan.layout import Layout

Shape = tuple[int, int]


def serves(x: Tensor) -> bool:
    """Whether hidden states are such that Longspan computes them: plain tensors on a CPU, not an export."""
    return type(x) is Tensor and x.device.type == "cpu" and not traced()


def traced() -> bool:
    """Whether a graph is being made of what is called, which could not hold a plan."""
    return torch._C._get_tracing_state() is not None or torch.compiler.is_exporting()


def said(module: object) -> str:
    """How a module of ours prints."""
    return "computed by longspan"


def bits(mask: Tensor) -> bytes:
    """A mask (B, L) as a value."""
    return mask.bool().numpy().tobytes()


@lru_cache(maxsize=64)
def once(make: Callable[..., Any], *values: Any) -> Any:
    """make(*values), made once for equal values: all layers of a call have the same masks."""
    with torch.inference_mode(False):  # it is kept, and may be trained with later
        return make(*values)


def layout(exists: bytes, shape: Shape, marked: bytes | None = None) -> Layout:
    """The rows of a padded batch (B, L), each document as long as the batch, as transformers counts."""
    flags = None if marked is None else np.frombuffer(marked, bool).reshape(shape)
    padded = Layout.padded(np.frombuffer(exists, bool).reshape(shape), marked=flags)
    length = np.full_like(padded.sites.length, shape[1])
    return Layout(replace(padded.sites, length=length), np.full_like(padded.lengths, shape[1]))
