"""What a run is trained on, and what it makes smaller."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from torch import nn

from longspan.shapes import IntArray
from longspan.tasks.losses import Loss as Loss

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Source(Protocol[T_co]):
    """Examples, known by their numbers: documents, or windows of a long text.

    Nothing in it changes while it is used: what a batch holds depends on its examples and the epoch alone, so
    a run that goes on after a kill, or with another number of processes, sees what it would have seen.
    """

    @property
    def lengths(self) -> IntArray:
        """The tokens of each example, by which batches are filled."""
        ...

    def batch(self, examples: IntArray, epoch: int) -> T_co:
        """Some examples as the loss takes them; what is random in them is drawn by (seed, epoch, example)."""
        ...


def on_device(batch: T, model: nn.Module) -> T:
    """A batch where the model is, if it can be moved."""
    device = next(model.parameters()).device
    return batch.to(device) if hasattr(batch, "to") else batch


LossFunction = Callable[[nn.Module, T], Loss]
"""(model, batch) to its loss."""
