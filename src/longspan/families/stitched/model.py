"""Stitched: a short encoder that reads long documents block by block, and across blocks in its last layers.

A model is at its best on texts as short as those it was tuned on. So the lower layers read every block of a
document alone, between its own special tokens and from position 0, as the short model would; the upper layers
slide a window over the whole document, and a block learns what stands around it. Nothing has to be trained
and no position table runs out. The idea and the name are ours; docs/lab-notes.md has the experiments.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longspan.errors import whole
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Encoder
from longspan.families.bert.model import BertConfig
from longspan.families.config import Blocks
from longspan.layout import Layout, Site
from longspan.patterns import ByLength, Full, Pattern, Window


@dataclass(frozen=True, kw_only=True)
class StitchedConfig(BertConfig):
    """Sizes of BERT, and how blocks are read and stitched together.

    >>> StitchedConfig(stitching=3).longest
    65536
    """

    family: ClassVar[str] = "Stitched"
    mark_name: ClassVar[str] = "block"
    full_attention: ClassVar[bool] = False
    longest: ClassVar[int] = 1 << 16
    "Tokens that are read at once, for the sake of memory; longer documents are cut between two blocks."

    positions: int = 512
    "Tokens of the longest block."
    radius: int | None = 64
    "Tokens seen on each side by the layers that see across blocks."
    block: int = 128
    "Tokens of a block as documents are cut, special tokens included."
    stitching: int = 2
    "How many layers, the last ones, see across blocks."
    sif_weights: bool = False
    "Each word has a weight, the rarer the larger, in the mean that is a text's vector."

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("radius", self.radius, 1)
        whole("block", self.block, 8, most=self.positions)
        whole("stitching", self.stitching, 0, most=self.layers)

    @property
    def pattern(self) -> Pattern:
        """What tokens see in the last layers: all of what the short model could read, else a window."""
        assert self.radius is not None
        return ByLength(self.positions, Full(), Window(self.radius))

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        blocks = blocks_of(layout)
        summary = "A token sees its own block, as if that were the document."
        within = AttentionSpec.within("within blocks", Full(), blocks, summary)
        across = AttentionSpec.within("across blocks", self.pattern, layout)
        return ((within,),) * (self.layers - self.stitching) + ((across,),) * self.stitching

    @property
    def exact_up_to(self) -> int:
        return self.positions

    @property
    def reading_blocks(self) -> Blocks | None:
        return Blocks(self.block, self.positions)

    @property
    def pools_by_sif(self) -> bool:
        return self.sif_weights

    def usual_marks(self, length: int) -> Iterable[int]:
        return range(0, length, self.block)

    def backbone(self) -> "Stitched":
        return Stitched(self)


class Stitched(Encoder):
    """ids (N,) of the documents of a layout to hidden states (N, C); marked rows begin a block.

    >>> import torch
    >>> tiny = StitchedConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, stitching=1)
    >>> Stitched(tiny).eval()(torch.arange(9), Layout.packed([5, 4], marked=[[0, 3], [0]])).shape
    torch.Size([9, 8])
    """

    def placed(self, layout: Layout) -> Layout:
        return blocks_of(layout)  # positions restart in each block


def blocks_of(layout: Layout) -> Layout:
    """The same rows, every block a document of its own.

    >>> blocks_of(Layout.packed([5, 4], marked=[[0, 3], []]))
    Layout(9 rows, documents of 3, 2 and 4)
    """
    site, rows = layout.sites, np.arange(layout.size)
    begins = site.marked | (site.position == 0)
    number = (np.cumsum(begins) - 1).astype(np.int32)
    position = rows - np.flatnonzero(begins)[number]
    position = np.where(site.exists, position, 0).astype(np.int32)
    length = np.zeros(int(begins.sum()), np.int32)
    np.maximum.at(length, number, np.where(site.exists, position + 1, 0).astype(np.int32))
    unmarked = np.zeros(layout.size, bool)
    return Layout(Site(position, position, number, length[number], unmarked, site.exists), length)
