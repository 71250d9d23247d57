"""Token vectors: each row of a backbone projected to a smaller one of length 1."""

from torch import Tensor, nn
from torch.nn import functional as F

from longspan.layout import Layout
from longspan.nn.linear import linear, new_linear
from longspan.nn.sites import Rows


class ProjectionHead(nn.Module):
    """(N, C) -> (N, size), each row of length 1 (ColBERT, section 3.2)."""

    def __init__(self, width: int, size: int) -> None:
        super().__init__()
        self.out = new_linear(width, size, bias=False)

    def forward(self, x: Tensor, layout: Layout | Rows, token_types: Tensor | None = None) -> Tensor:
        return F.normalize(linear(self.out, x).float(), dim=-1)
