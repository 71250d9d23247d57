"""An exponential moving average of weights, which often does better than the last ones."""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor

from longspan.errors import bad, number, refused


class EMA:
    """The average of named tensors in float32: after each update `decay` of itself and the rest of them.

    >>> weights = {"w": torch.zeros(1)}
    >>> ema = EMA(0.75, weights)
    >>> _ = weights["w"].fill_(8.0)
    >>> ema.update()
    >>> ema.average
    {'w': tensor([2.])}
    """

    def __init__(self, decay: float, tensors: Mapping[str, Tensor]) -> None:
        if number("decay", decay, 0, 1, below=True) == 0:
            raise bad("decay", "more than 0", decay)
        self._decay, self._tensors = decay, dict(tensors)
        self._average = {name: _copied(tensor) for name, tensor in tensors.items()}

    @property
    def average(self) -> dict[str, Tensor]:
        """The averages by name; those that `update` changes, not copies."""
        return dict(self._average)

    @torch.no_grad()
    def update(self) -> None:
        """Take the present values into the average."""
        average = list(self._average.values())
        if average:
            now = [tensor.detach().to(mean.dtype) for tensor, mean in self._pairs()]
            torch._foreach_lerp_(average, now, 1 - self._decay)

    @torch.no_grad()
    def restore(self, stored: Mapping[str, Tensor], place: object) -> None:
        """Go on from averages that were stored; `place` is named where they do not fit."""
        if stored.keys() != self._average.keys():
            odd = sorted(stored.keys() ^ self._average.keys())[0]
            raise refused(place, f"its average is one of other weights: {odd}")
        for name, mean in self._average.items():
            if stored[name].shape != mean.shape:
                shapes = f"{tuple(stored[name].shape)}, not {tuple(mean.shape)}"
                raise refused(place, f"the average of {name} has the shape {shapes}")
        for name, mean in self._average.items():
            mean.copy_(stored[name])

    def _pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        return zip(self._tensors.values(), self._average.values(), strict=True)


def _copied(tensor: Tensor) -> Tensor:
    """A copy in float32, or in float64 if that is what it is."""
    return tensor.detach().clone().to(torch.promote_types(tensor.dtype, torch.float32))
