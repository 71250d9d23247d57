"""Patterns that tests sweep over: small instances of every registered one, and compositions of models."""

from longspan.patterns import (
    Belongs,
    BlockWindow,
    ByLength,
    Causal,
    Fixed,
    FromGlobal,
    FromLocal,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Pattern,
    RandomBlocks,
    SameTag,
    Strided,
    ToGlobal,
    ToUntagged,
    Window,
    gallery,
)
from longspan.patterns.random_blocks import PLANS

EXAMPLES: tuple[Pattern, ...] = (
    Belongs(),
    Belongs(("parent",)),
    BlockWindow(4),
    BlockWindow(64),
    BlockWindow(7, radius=2),
    BlockWindow(16, radius=0),
    Full(),
    Window(3),
    Window(70),
    Window(5, dilation=3),
    Window(left=4, right=0),
    Window(left=0, right=None, dilation=5),
    Window((1, 9), dilation=(4, 1)),
    ByLength(20, Full(), Window(3)),
    ByLength(40, Window(2, dilation=2), Window((1, 3), dilation=2)),
    Causal(),
    Fixed(4),
    Fixed(16, summary=3),
    GlobalBlocks(4),
    GlobalBlocks(64),
    GlobalBlocks(5, first=2, last=0),
    ToGlobal(),
    FromGlobal(),
    GlobalTokens(),
    FromLocal(),
    *(RandomBlocks(4, 3, plan, seed=1, table=64, heads=2) for plan in PLANS),
    SameTag("segment"),
    ToUntagged("segment"),
    Strided(4),
    Strided(16),
)


def sweep() -> list[Pattern]:
    """The examples, the gallery, and more compositions, each once."""
    shown = [exhibit.pattern for exhibit in gallery().values()]
    mixed: list[Pattern] = [
        (Window(9, dilation=2) | ToGlobal()) & Causal(),
        (Window((2, 5)) + Window(3)) | GlobalTokens(),
        (Fixed(8, summary=2) | Window(3)) & FromLocal(),
        (BlockWindow(8) | ToGlobal()) & Window(11),
        (Window(4) & SameTag("segment") | ToGlobal()) & Belongs(),
    ]
    return list(dict.fromkeys([*EXAMPLES, *shown, *mixed]))
