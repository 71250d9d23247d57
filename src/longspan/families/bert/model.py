"""BERT and the short models with its layers (Devlin et al. 2019)."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import bad, whole
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Encoder
from longspan.families.config import EncoderConfig
from longspan.layout import Layout
from longspan.patterns import Full, Pattern, Window


@dataclass(frozen=True, kw_only=True)
class BertConfig(EncoderConfig):
    """Sizes of BERT, and how far a token sees.

    >>> BertConfig(radius=128).pattern
    Window(128)
    """

    family: ClassVar[str] = "Bert"

    vocab_size: int = 30522
    positions: int = 512
    token_types: int = 2
    norm_eps: float = 1e-12
    radius: int | None = None
    "Tokens seen on each side; None: all."

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.buckets:
            raise bad("buckets", "0 in a BERT", self.buckets, "Biases by distance need another family.")
        if self.radius is not None:
            whole("radius", self.radius, 1)

    @property
    def pattern(self) -> Pattern:
        """What each token sees."""
        return Full() if self.radius is None else Window(self.radius)

    @property
    def full_attention(self) -> bool:
        return self.radius is None

    @property
    def exact_up_to(self) -> int:
        return self.positions if self.radius is None else self.radius + 1

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        name = "all tokens" if self.radius is None else "window"
        return ((AttentionSpec.within(name, self.pattern, layout),),) * self.layers

    def backbone(self) -> Encoder:
        return Bert(self)


class Bert(Encoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    >>> import torch
    >>> tiny = BertConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16)
    >>> Bert(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """
