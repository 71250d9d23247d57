"""BERT, RoBERTa, XLM-R, MiniLM and ELECTRA: the short models that people lengthen (Devlin et al. 2019)."""

from dataclasses import dataclass

from torch import Tensor, nn

from longspan.engine.plan import plan
from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.models import body
from longspan.models.calls import Call, Calls
from longspan.models.config import EncoderConfig
from longspan.nn.attention import SelfAttention
from longspan.patterns import Full, Pattern, Window


@dataclass(frozen=True, kw_only=True)
class BertConfig(EncoderConfig):
    """Sizes of BERT; RoBERTa's family has position_offset 2 and one type.

    >>> BertConfig(radius=128).pattern
    Window(128)
    """

    vocab_size: int = 30522
    positions: int = 512
    types: int = 2
    norm_eps: float = 1e-12
    radius: int | None = None
    "Tokens seen on each side; None: all."

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.buckets:
            raise bad("buckets", "0 in a BERT", self.buckets, "Use MPNetConfig for biases by distance.")
        if self.radius is not None:
            whole("radius", self.radius, 1)

    @property
    def pattern(self) -> Pattern:
        """What each token sees."""
        return Full() if self.radius is None else Window(self.radius)

    def calls(self, layout: Layout) -> Calls:
        """What each layer attends to, for pictures and reports."""
        name = "all tokens" if self.radius is None else "window"
        return ((Call(name=name, pattern=self.pattern, queries=layout, keys=layout),),) * self.layers


class Bert(nn.Module):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    >>> import torch
    >>> tiny = BertConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> Bert(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = body.embeddings(config)
        self.layers = body.layers(config, SelfAttention)
        self.checkpointing = False
        body.initialise(self, config.init_std)

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        x = self.embeddings(ids, layout, types)
        pairs = plan(self.config.pattern, layout, heads=self.config.heads)
        return body.run(self.layers, x, [(pairs,)] * self.config.layers, checkpointing=self.checkpointing)
