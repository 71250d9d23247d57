"""Patterns worth showing and worth testing: every registered one, and the compositions that models use."""

from dataclasses import dataclass, field
from pathlib import Path

from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.patterns.belongs import Belongs
from longspan.patterns.block_window import BlockWindow
from longspan.patterns.by_length import ByLength
from longspan.patterns.causal import Causal
from longspan.patterns.fixed import Fixed
from longspan.patterns.full import Full
from longspan.patterns.global_blocks import GlobalBlocks
from longspan.patterns.marks import FromLocal, GlobalTokens, ToGlobal
from longspan.patterns.random_blocks import RandomBlocks
from longspan.patterns.same_tag import SameTag
from longspan.patterns.strided import Strided
from longspan.patterns.window import Window


@dataclass(frozen=True)
class Picture:
    """A pattern, and the rows on which it shows best."""

    pattern: Pattern
    queries: Layout = field(default_factory=lambda: Layout.packed([40]))
    keys: Layout | None = None

    def draw(self, style: str = "text") -> str:
        """The picture as "text" or "svg"."""
        return self.pattern.draw(self.queries, self.keys, style=style)


def sweep() -> list[Pattern]:
    """Small instances of every registered pattern and of compositions, for tests that must miss none."""
    alone = [pattern for cls in Pattern.registry.values() for pattern in cls.examples()]
    drawn = [picture.pattern for picture in gallery().values()]
    mixed: list[Pattern] = [
        (Window(9, dilation=2) | ToGlobal()) & Causal(),
        (Window((2, 5)) + Window(3)) | GlobalTokens(),
        (Fixed(8, summary=2) | Window(3)) & FromLocal(),
        (BlockWindow(8) | ToGlobal()) & Window(11),
        (Window(4) & SameTag("segment") | ToGlobal()) & Belongs(),
    ]
    return list(dict.fromkeys([*alone, *drawn, *mixed]))


def gallery() -> dict[str, Picture]:
    """The pictures of the documentation, by name."""
    two = Layout.packed([26, 14], marked=[[0, 11], [0]])
    tokens = Layout.packed([40])
    bigbird = BlockWindow(4) | GlobalBlocks(4)
    return {
        "full": Picture(Full(), Layout.packed([26, 14])),
        "causal": Picture(Causal(), Layout.packed([26, 14])),
        "window": Picture(Window(4)),
        "dilated": Picture(Window(3, dilation=(1, 2, 4)) & Causal()),
        "longformer": Picture(Window(3) | GlobalTokens(), two),
        "longformer-local": Picture((Window(3) | ToGlobal()) & FromLocal(), two),
        "bigbird": Picture(bigbird + RandomBlocks(4, 2, "uniform", seed=7), Layout.packed([60])),
        "bigbird-tf": Picture(bigbird + RandomBlocks(4, 3, "tf", heads=2), Layout.packed([96])),
        "bigbird-hf-eval": Picture(bigbird + RandomBlocks(4, 3, "hf-eval"), Layout.packed([60])),
        "by-length": Picture(ByLength(16, Full(), Window(2)), two),
        "strided": Picture(Strided(6)),
        "fixed": Picture(Fixed(8, summary=2)),
        "pooled": Picture(Window(8), tokens, tokens.pool(kernel=5, stride=4)),
    }


def save_pictures(folder: Path) -> list[Path]:
    """Write the gallery as SVG files and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, picture in gallery().items():
        path = folder / f"{name}.svg"
        path.write_text(picture.draw("svg"), encoding="utf-8")
        written.append(path)
    return written
