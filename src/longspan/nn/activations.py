"""The activations that checkpoints may name: a closed table, never an import by name."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import bad

Activation = Callable[[Tensor], Tensor]

gelu_tanh: Activation = partial(F.gelu, approximate="tanh")

ACTIVATIONS: dict[str, Activation] = {
    "gelu": F.gelu,
    "gelu_new": gelu_tanh,
    "gelu_fast": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": F.relu,
    "silu": F.silu,
    "swish": F.silu,
    "tanh": torch.tanh,
}


def activation(name: str) -> Activation:
    """The function of that name.

    >>> activation("relu")(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if name not in ACTIVATIONS:
        raise bad("activation", f"one of {', '.join(ACTIVATIONS)}", name)
    return ACTIVATIONS[name]
