"""What all encoders have in common, as data."""

import math
from dataclasses import dataclass

from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.models.calls import Calls
from longspan.nn.activations import activation

LARGEST = 2**24
"""No size of a model may exceed this: a config is data from anywhere."""
MOST_BUCKETS = 256


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Sizes of an encoder with the body of BERT; families add what they attend to."""

    vocab_size: int = 50265
    width: int = 768
    "Size of the hidden states; a multiple of `heads`."
    layers: int = 12
    heads: int = 12
    feed_forward: int = 3072
    positions: int = 4096
    "Tokens of the longest document."
    position_offset: int = 0
    "Rows of the position table before position 0 (RoBERTa: 2)."
    types: int = 1
    "Segments that are told apart by an embedding; 0: there is no such table."
    narrow: int | None = None
    "Size of the embeddings, if they are projected to `width` (ELECTRA's small models); None: `width`."
    buckets: int = 0
    "Buckets of distances, each with a bias for every head, the same in all layers (MPNet: 32); 0: no biases."
    activation: str = "gelu"
    head_activation: str = "usual"
    'In the head of fill, classify and choose; "usual" is what the family has there.'
    norm_first: bool = False
    """Norms stand before the blocks and one behind the last, none behind the embeddings, as in Pegasus; else
    behind the residuals, as in BERT."""
    rescale_embeddings: bool = False
    "Words are multiplied by the square root of the width."
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation_dropout: float = 0.0
    "Within feed-forward blocks."
    norm_eps: float = 1e-5
    init_std: float = 0.02
    pad_id: int = 0

    def __post_init__(self) -> None:
        for name in ("vocab_size", "width", "heads", "feed_forward", "positions"):
            whole(name, getattr(self, name), 1, most=LARGEST)
        whole("layers", self.layers, 1, most=1024)
        for name in ("position_offset", "pad_id", "types", "buckets"):
            whole(name, getattr(self, name), 0, most=LARGEST)
        if self.width % self.heads:
            raise bad("width", f"a multiple of the {self.heads} heads", self.width)
        if self.narrow is not None:
            whole("narrow", self.narrow, 1, most=LARGEST)
        if self.buckets % 4 or self.buckets > MOST_BUCKETS:
            raise bad("buckets", f"a multiple of 4, at most {MOST_BUCKETS}", self.buckets)
        if self.pad_id >= self.vocab_size:
            raise bad("pad_id", f"less than the vocabulary, {self.vocab_size}", self.pad_id)
        activation(self.activation)
        if self.head_activation != "usual":
            activation(self.head_activation)
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            number(name, getattr(self, name), 0.0, 1.0, below=True)
        number("norm_eps", self.norm_eps, 1e-20, 1.0)
        number("init_std", self.init_std, 0.0, 100.0)

    @property
    def longest(self) -> int:
        """Tokens that are read at once."""
        return self.positions

    def calls(self, layout: Layout) -> Calls:
        """What each layer attends to in evaluation; every family says it of itself."""
        raise NotImplementedError


def number(name: str, value: object, least: float, most: float, *, below: bool = False) -> float:
    """`value` as a float from `least` to `most` (below it, if asked), or the error that says why not."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise bad(name, "a number", value)
    if not least <= value <= most or (below and value == most):
        raise bad(name, f"from {least:g} to {'below ' if below else ''}{most:g}", value)
    return float(value)
