"""The attentions of a model's layers as data: pictures and reports show what a model computes."""

from dataclasses import dataclass

from longspan.layout import Layout
from longspan.patterns.base import Pattern


@dataclass(frozen=True, kw_only=True)
class Call:
    """One attention of a layer: which rows look at which by what pattern."""

    name: str
    "What it is to the model, such as window, global rows or pooled."
    pattern: Pattern
    queries: Layout
    keys: Layout
    pooled: tuple[int, int] | None = None
    "Kernel and stride, if the keys are slots pooled from what the layer's calls before have given its rows."
    words: str = ""
    "What it lets see, in a sentence; what the pattern says of itself if empty."


Calls = tuple[tuple[Call, ...], ...]
"""Of each layer, the first layer first, the attentions that it computes in evaluation."""
