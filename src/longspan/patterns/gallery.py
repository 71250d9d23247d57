"""Patterns worth showing: those of models, each on rows that show it best."""

from dataclasses import dataclass, field

from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.patterns.block_window import BlockWindow
from longspan.patterns.by_length import ByLength
from longspan.patterns.causal import Causal
from longspan.patterns.full import Full
from longspan.patterns.global_blocks import GlobalBlocks
from longspan.patterns.marks import FromLocal, GlobalTokens, ToGlobal
from longspan.patterns.random_blocks import RandomBlocks
from longspan.patterns.sparse_transformer import Fixed, Strided
from longspan.patterns.window import Window


@dataclass(frozen=True)
class Exhibit:
    """A pattern, and the rows on which it shows best."""

    pattern: Pattern
    queries: Layout = field(default_factory=lambda: Layout.packed([40]))
    keys: Layout | None = None

    def draw(self, style: str = "text") -> str:
        """Its picture, as `text` or `svg`."""
        return self.pattern.draw(self.queries, self.keys, style=style)


def gallery() -> dict[str, Exhibit]:
    """The pictures of the documentation, by name."""
    two = Layout.packed([26, 14], marked=[[0, 11], [0]])
    tokens = Layout.packed([40])
    bigbird = BlockWindow(4) | GlobalBlocks(4)
    return {
        "full": Exhibit(Full(), Layout.packed([26, 14])),
        "causal": Exhibit(Causal(), Layout.packed([26, 14])),
        "window": Exhibit(Window(4)),
        "dilated": Exhibit(Window(3, dilation=(1, 2, 4)) & Causal()),
        "longformer": Exhibit(Window(3) | GlobalTokens(), two),
        "longformer-local": Exhibit((Window(3) | ToGlobal()) & FromLocal(), two),
        "bigbird": Exhibit(bigbird + RandomBlocks(4, 2, "uniform", seed=7), Layout.packed([60])),
        "bigbird-tf": Exhibit(bigbird + RandomBlocks(4, 3, "tf", heads=2), Layout.packed([96])),
        "bigbird-hf-eval": Exhibit(bigbird + RandomBlocks(4, 3, "hf-eval"), Layout.packed([60])),
        "by-length": Exhibit(ByLength(16, Full(), Window(2)), two),
        "strided": Exhibit(Strided(6)),
        "fixed": Exhibit(Fixed(8, summary=2)),
        "pooled": Exhibit(Window(8), tokens, tokens.pool(kernel=5, stride=4)),
    }
