"""What may attend to what: patterns, their composition, pictures and graphs."""

from longspan.patterns.base import Pattern, Reach, Spans
from longspan.patterns.belongs import Belongs
from longspan.patterns.block_window import BlockWindow
from longspan.patterns.by_length import ByLength
from longspan.patterns.causal import Causal
from longspan.patterns.compose import Intersection, Sum, Union
from longspan.patterns.full import Full
from longspan.patterns.gallery import gallery
from longspan.patterns.global_blocks import GlobalBlocks
from longspan.patterns.marks import FromGlobal, FromLocal, GlobalTokens, ToGlobal
from longspan.patterns.random_blocks import RandomBlocks
from longspan.patterns.same_tag import SameTag
from longspan.patterns.sparse_transformer import Fixed, Strided
from longspan.patterns.to_untagged import ToUntagged
from longspan.patterns.window import Window

__all__ = [
    "Belongs",
    "BlockWindow",
    "ByLength",
    "Causal",
    "Fixed",
    "FromGlobal",
    "FromLocal",
    "Full",
    "GlobalBlocks",
    "GlobalTokens",
    "Intersection",
    "Pattern",
    "RandomBlocks",
    "Reach",
    "SameTag",
    "Spans",
    "Strided",
    "Sum",
    "ToGlobal",
    "ToUntagged",
    "Union",
    "Window",
    "gallery",
]
