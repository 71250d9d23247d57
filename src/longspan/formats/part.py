"""One file of weights, whatever its format."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

Shapes = dict[str, tuple[tuple[int, ...], torch.dtype]]


class Part(NamedTuple):
    """The tensors of a file: what they are, known without reading data, and how to read one."""

    shapes: Shapes
    read: Callable[[str], Tensor]
