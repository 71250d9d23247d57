"""Random attention between blocks, in each of the ways that published code draws it."""

from dataclasses import dataclass

import numpy as np

from longspan.errors import FARTHEST, bad, whole
from longspan.layout import Site
from longspan.patterns.base import Pattern, Reach, Spans
from longspan.patterns.random_tables import Table, general_table, paper_table, uniform_table
from longspan.shapes import IntArray

PLANS = ("tf", "hf-train", "hf-eval", "uniform", "none")
_PAPER_LENGTHS = {"tf": (1024, 2048, 3072, 4096), "hf-train": (1024, 3072, 4096)}
_ROWS_LISTED = 8  # a tile over more block rows than this is said to reach everywhere


@dataclass(frozen=True, init=False, repr=False)
class RandomBlocks(Pattern):
    """Each block sees `count` more blocks, drawn once for each head; a block drawn twice counts twice.

    `plan`: "tf" and "hf-train" repeat the draws of the original code and of transformers in training, which
    keep to the first 1,024 or 704 tokens and depend on the number of `heads` and the `table`'s length;
    "hf-eval" is what transformers evaluates, block 0 counted `count` times more; "uniform" draws from the
    whole document; "none" draws nothing. The first and last blocks draw nothing: they see all as it is.
    Combine by `+` where a block drawn again shall count again, as in all published code.
    """

    block: int
    drawn: int
    plan: str
    seed: int
    table: int
    heads: int
    of_head: int | None

    def __init__(
        self,
        block: int,
        count: int,
        plan: str,
        seed: int = 0,
        table: int = 4096,
        heads: int = 12,
        of_head: int | None = None,
    ) -> None:
        if plan not in PLANS:
            raise bad("plan", f"one of {', '.join(PLANS)}", plan)
        object.__setattr__(self, "block", whole("block", block, 1))
        object.__setattr__(self, "drawn", whole("count", count, 0))
        object.__setattr__(self, "plan", plan)
        object.__setattr__(self, "seed", whole("seed", seed, 0, most=2**64 - 1))
        object.__setattr__(self, "table", whole("table", table, self.block))
        object.__setattr__(self, "heads", whole("heads", heads, 1))
        object.__setattr__(self, "of_head", None if of_head is None else whole("of_head", of_head, 0))
        if plan in _PAPER_LENGTHS and self.seed >= 2**32:
            raise bad("seed", "less than 2**32", seed)
        if self.table % self.block:
            raise bad("table", f"a multiple of the block, {self.block}", table)
        if of_head is not None and plan in _PAPER_LENGTHS and of_head >= self.heads:
            raise bad("h", f"one of the {self.heads} heads, counted from 0", of_head, "Set `heads`.")

    def picks(self, blocks: int) -> Table:
        """(blocks, count): the blocks that each block of such a document draws, -1 for none."""
        table = np.full((blocks, self.drawn), -1, np.int32)
        table[1:-1] = self._draws(blocks)[1 : blocks - 1]
        return table

    def count(self, q: Site, k: Site) -> IntArray:
        key, picks = k.position // self.block, self._picks(q.position, q.length)
        shape = np.broadcast_shapes(q.shape, k.shape)
        total = np.zeros(shape, np.int8 if self.drawn < 128 else np.int32)
        for pick in range(self.drawn):
            total += key == picks[..., pick]
        return total

    def reach(self, spans: Spans) -> Reach:
        rows = spans.hi // self.block - spans.lo // self.block + 1
        wide = rows > _ROWS_LISTED
        reach = Reach.of(spans, (-FARTHEST, FARTHEST)).only(wide)
        for row in range(int(np.max(rows[~wide], initial=0))):
            position = np.minimum(spans.lo + row * self.block, spans.hi)
            picks = self._picks(position, spans.length)
            first, size = picks * self.block, np.where(picks < 0, 0, self.block)
            reach |= Reach.of(spans, *((first[:, j], (first + size - 1)[:, j]) for j in range(self.drawn)))
        return reach

    @property
    def grain(self) -> int:
        return self.block

    @property
    def heads_declared(self) -> int | None:
        return self.heads if self.plan in _PAPER_LENGTHS and self.of_head is None else None

    def head(self, h: int) -> Pattern:
        if self.plan in ("hf-eval", "none") or self.of_head is not None:
            return self
        return RandomBlocks(self.block, self.drawn, self.plan, self.seed, self.table, self.heads, of_head=h)

    def explain(self) -> str:
        if self.plan == "none" or self.drawn == 0:
            return "No random blocks."
        if self.plan == "hf-eval":
            return f"The first block of {self.block} is counted {self.drawn} times more."
        where = "the whole document" if self.plan == "uniform" else "the document's first blocks"
        drawn = f"A block of {self.block} sees {self.drawn} blocks drawn from {where}"
        return f"{drawn} ({self.plan}, seed {self.seed})."

    def _arguments(self) -> dict[str, object]:
        values = super()._arguments()
        return {"block": values.pop("block"), "count": values.pop("drawn"), **values}

    def _picks(self, position: IntArray, length: IntArray) -> Table:
        """The draws of each query's block: (...,) -> (..., count)."""
        row, blocks = position // self.block, (length + self.block - 1) // self.block
        picks = np.full((*row.shape, self.drawn), -1, np.int32)
        for size in np.unique(blocks):
            here = blocks == size
            if size > 0:
                picks[here] = self.picks(int(size))[np.minimum(row[here], size - 1)]
        return picks

    def _draws(self, blocks: int) -> Table:
        if self.plan == "hf-eval":
            return np.zeros((blocks, self.drawn), np.int32)
        if self.plan == "none":
            return np.full((blocks, self.drawn), -1, np.int32)
        if self.of_head is None:
            raise bad("pattern", "one head's", self, "Every head draws for itself: pick one with .head(h).")
        if self.plan == "uniform":
            return uniform_table(blocks, self.drawn, self.seed, self.of_head)
        if blocks * self.block in _PAPER_LENGTHS[self.plan]:
            size = max(self.table // self.block, blocks)
            tables = paper_table(size, self.block, self.drawn, self.seed, self.heads)
        else:
            tables = general_table(blocks, self.drawn, self.seed, self.heads)
        table: Table = tables[self.of_head]  # (H, blocks, count) -> (blocks, count)
        return table
