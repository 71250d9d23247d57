"""The exponential moving average of weights."""

from collections.abc import Mapping

import torch
from torch import Tensor

from longspan.errors import refused


class EMA:
    """Averages in float32: each update keeps a share `decay` of them."""

    def __init__(self, decay: float, named: Mapping[str, Tensor]) -> None:
        self.decay, self._named = decay, named
        self.average = {name: p.detach().float().clone() for name, p in named.items()}

    def update(self) -> None:
        """Take the weights as they are now into the average."""
        values = [p.detach() for p in self._named.values()]
        torch._foreach_lerp_([*self.average.values()], values, 1 - self.decay)

    def restore(self, stored: Mapping[str, Tensor], place: object) -> None:
        """Take the averages of a checkpoint."""
        if stored.keys() != self.average.keys():
            raise refused(place, "it has no average of the weights")
        for name, value in stored.items():
            self.average[name].copy_(value)
