"""MPNet: BERT without segments, whose scores know how far apart two tokens are (Song et al. 2020)."""

from dataclasses import dataclass

from torch import Tensor, nn

from longspan.engine.plan import plan
from longspan.errors import bad
from longspan.layout import Layout
from longspan.models import body
from longspan.models.calls import Call, Calls
from longspan.models.config import EncoderConfig
from longspan.nn.attention import SelfAttention
from longspan.patterns import Full


@dataclass(frozen=True, kw_only=True)
class MPNetConfig(EncoderConfig):
    """Sizes of BERT, positions that begin behind the padding token, and buckets of distances.

    >>> MPNetConfig().types, MPNetConfig().buckets
    (0, 32)
    """

    vocab_size: int = 30527
    positions: int = 510
    position_offset: int = 2
    types: int = 0
    norm_eps: float = 1e-12
    pad_id: int = 1
    buckets: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.buckets:
            raise bad("buckets", "at least 4", self.buckets, "Use BertConfig for a model without biases.")

    def calls(self, layout: Layout) -> Calls:
        """What each layer attends to, for pictures and reports."""
        return ((Call(name="all tokens", pattern=Full(), queries=layout, keys=layout),),) * self.layers


class MPNet(nn.Module):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    A score is q . k / sqrt(D) plus a bias by the distance from query to key, one for each head and the same
    in all layers. What makes MPNet's pretraining its own, a permuted order of the masked words, is not needed
    to read with it.

    >>> import torch
    >>> tiny = MPNetConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> MPNet(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    def __init__(self, config: MPNetConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = body.embeddings(config)
        self.layers = body.layers(config, SelfAttention)
        self.relative_bias = body.relative_bias(config)
        self.checkpointing = False
        body.initialise(self, config.init_std)

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        x = self.embeddings(ids, layout, types)
        labels, biases = body.distances(self.relative_bias, self.config.positions)
        pairs = plan(Full(), layout, heads=self.config.heads, labels=labels)
        seen = [(pairs, biases)] * self.config.layers
        return body.run(self.layers, x, seen, checkpointing=self.checkpointing)
