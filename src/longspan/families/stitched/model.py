"""Stitched: a short encoder that reads long documents block by block, and across blocks in its last layers.

A model is at its best on texts as short as those it was tuned on. So the lower layers read every block of a
document alone, between its own special tokens and from position 0, as the short model would; the upper layers
slide a window over the whole document, and a block learns what stands around it. Nothing has to be trained
and no position table runs out. The idea and the name are ours; docs/lab-notes.md has the experiments.
"""

from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from longspan.engine.plan import plan
from longspan.errors import whole
from longspan.layout import Layout, Site
from longspan.models import body
from longspan.models.bert import BertConfig
from longspan.models.calls import Call, Calls
from longspan.nn.attention import SelfAttention
from longspan.patterns import ByLength, Full, Pattern, Window

LONGEST = 1 << 16
"""Tokens that are read at once, for the sake of memory; longer documents are cut between two blocks."""


@dataclass(frozen=True, kw_only=True)
class StitchedConfig(BertConfig):
    """Sizes of BERT, and how blocks are read and stitched together.

    >>> StitchedConfig(stitching=3).longest
    65536
    """

    positions: int = 512
    "Tokens of the longest block."
    radius: int | None = 64
    "Tokens seen on each side by the layers that see across blocks."
    block: int = 128
    "Tokens of a block as documents are cut, special tokens included."
    stitching: int = 2
    "How many layers, the last ones, see across blocks."
    salience: bool = False
    "Whether tokens count by a weight of their own in the mean that is a text's vector."

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("radius", self.radius, 1)
        whole("block", self.block, 8, most=self.positions)
        whole("stitching", self.stitching, 0, most=self.layers)

    @property
    def longest(self) -> int:
        return LONGEST

    @property
    def pattern(self) -> Pattern:
        """What tokens see in the last layers: all of what the short model could read, else a window."""
        assert self.radius is not None
        return ByLength(self.positions, Full(), Window(self.radius))

    def calls(self, layout: Layout) -> Calls:
        """What each layer attends to, for pictures and reports: blocks alone, then across them."""
        blocks = blocks_of(layout)
        alone = "A token sees its own block, as if that were the document."
        apart = Call(name="within blocks", pattern=Full(), queries=blocks, keys=blocks, words=alone)
        across = Call(name="across blocks", pattern=self.pattern, queries=layout, keys=layout)
        return ((apart,),) * (self.layers - self.stitching) + ((across,),) * self.stitching


class Stitched(nn.Module):
    """ids (N,) of the documents of a layout to hidden states (N, C); marked rows begin a block.

    >>> import torch
    >>> tiny = StitchedConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, stitching=1)
    >>> Stitched(tiny).eval()(torch.arange(9), Layout.packed([5, 4], marked=[[0, 3], [0]])).shape
    torch.Size([9, 8])
    """

    def __init__(self, config: StitchedConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = body.embeddings(config)
        self.layers = body.layers(config, SelfAttention)
        self.checkpointing = False
        body.initialise(self, config.init_std)

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        config, blocks = self.config, blocks_of(layout)
        x = self.embeddings(ids, blocks, types)  # positions count from the beginning of a block
        apart = plan(Full(), blocks, heads=config.heads)
        across = plan(config.pattern, layout, heads=config.heads)
        lower = config.layers - config.stitching
        seen = [(apart,)] * lower + [(across,)] * config.stitching
        return body.run(self.layers, x, seen, checkpointing=self.checkpointing)


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
