"""BigBird-ITC: random, window and global blocks (Zaheer et al. 2020, section 2)."""

from dataclasses import dataclass

from torch import Tensor, nn

from longspan.engine.plan import plan
from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.models import body
from longspan.models.calls import Call, Calls
from longspan.models.config import EncoderConfig
from longspan.nn.attention import SelfAttention
from longspan.patterns import (
    BlockWindow,
    ByLength,
    Causal,
    Full,
    GlobalBlocks,
    GlobalTokens,
    Pattern,
    RandomBlocks,
)

RANDOM = ("hf", "tf", "hf-train", "hf-eval", "uniform", "none")


@dataclass(frozen=True, kw_only=True)
class BigBirdConfig(EncoderConfig):
    """Sizes of BERT, and the blocks that each block sees besides itself.

    >>> BigBirdConfig(block=64, random_blocks=3).short
    704
    """

    vocab_size: int = 50358
    types: int = 2
    activation: str = "gelu_new"
    norm_eps: float = 1e-12
    block: int = 64
    random_blocks: int = 3
    "Blocks drawn at random for each block, layer and head."
    random: str = "hf"
    """How they are drawn. "hf" is what Hugging Face computes: "hf-train" in training, "hf-eval" (no draw, the
    first block counted more often) in evaluation; the others are the same in both."""
    full_up_to: int | None = None
    "Documents of so many tokens see everything; by default (5 + 2 * random_blocks) * block."
    attention: str = "sparse"
    '"sparse", or "full" for all documents.'
    causal: bool = False
    "A decoder: full attention to what came before."
    bias: bool = True
    "Queries, keys and values have biases."
    out_bias: bool = True
    "And so has what stands behind attention."
    bert_heads: bool = False
    "Heads of BERT, which are told the types: a lengthened model keeps the head that it was trained with."

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("block", self.block, 1)
        whole("random_blocks", self.random_blocks, 0)
        if self.random not in RANDOM:
            raise bad("random", f"one of {', '.join(RANDOM)}", self.random)
        if self.attention not in ("sparse", "full"):
            raise bad("attention", "sparse or full", self.attention)
        if self.full_up_to is not None:
            whole("full_up_to", self.full_up_to, 0)

    @property
    def short(self) -> int:
        """The longest document that sees everything."""
        return (5 + 2 * self.random_blocks) * self.block if self.full_up_to is None else self.full_up_to

    def pattern(self, layer: int, *, training: bool, marked: bool = False) -> Pattern:
        """What blocks of a layer see; `marked` tokens, if there are any, see and are seen everywhere."""
        if self.causal:
            return Causal()
        if self.attention == "full":
            return Full()
        drawn = ("hf-train" if training else "hf-eval") if self.random == "hf" else self.random
        table = max(self.positions // self.block, 1) * self.block
        seed = 0 if drawn in ("hf-eval", "none") else layer  # where nothing is drawn, all layers share a plan
        randoms = RandomBlocks(
            self.block, self.random_blocks, drawn, seed=seed, table=table, heads=self.heads
        )
        blocks = (BlockWindow(self.block) | GlobalBlocks(self.block)) + randoms
        return ByLength(self.short, Full(), blocks | GlobalTokens() if marked else blocks)

    def calls(self, layout: Layout) -> Calls:
        """What each layer attends to in evaluation, for pictures and reports."""
        marked = bool(layout.marked_rows.size)
        seen = (self.pattern(layer, training=False, marked=marked) for layer in range(self.layers))
        return tuple((Call(name="blocks", pattern=one, queries=layout, keys=layout),) for one in seen)


class BigBird(nn.Module):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    Every document is treated by its own length, whatever came before and whatever stands beside it.

    >>> import torch
    >>> tiny = BigBirdConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, block=2)
    >>> BigBird(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    def __init__(self, config: BigBirdConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = body.embeddings(config, norm_last=True)
        # No attention dropout: neither the paper's code nor Hugging Face's drops any in the sparse path.
        biases = {"bias": config.bias, "out_bias": config.out_bias}
        self.layers = body.layers(config, SelfAttention, **biases, dropout=0.0)
        self.relative_bias = body.relative_bias(config)
        self.checkpointing = False
        body.initialise(self, config.init_std)

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        x = self.embeddings(ids, layout, types)
        marked = bool(layout.marked_rows.size)
        labels, biases = body.distances(self.relative_bias, self.config.short)
        seen = []
        for layer in range(self.config.layers):
            pattern = self.config.pattern(layer, training=self.training, marked=marked)
            seen.append((plan(pattern, layout, heads=self.config.heads, labels=labels), biases))
        return body.run(self.layers, x, seen, checkpointing=self.checkpointing)
