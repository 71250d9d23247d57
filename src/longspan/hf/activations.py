"""transformers' "gelu_new", which it composes of eight operations, by torch's one operation for the same."""

from torch import Tensor
from torch.nn import functional as F
from transformers import activations as theirs


class NewGELUActivation(theirs.NewGELUActivation):  # type: ignore[misc]
    """Named as what it takes the place of; equal to it within rounding."""

    IS_LAYER = False

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate="tanh")

    def extra_repr(self) -> str:
        return "computed by torch, at longspan's wish"


CLASSES = (NewGELUActivation,)
