"""BigBird-ITC: random, window and global blocks (Zaheer et al. 2020, section 2)."""

from dataclasses import dataclass
from typing import ClassVar

from longspan.errors import bad, one_of, whole
from longspan.families.attention_spec import AttentionSpec, LayerSpecs
from longspan.families.backbone import Encoder
from longspan.families.config import EncoderConfig, GlobalTokenUse
from longspan.layout import Layout
from longspan.nn.attention import SelfAttention
from longspan.patterns import BlockWindow, ByLength, Causal, Full, GlobalBlocks, GlobalTokens, RandomBlocks
from longspan.patterns.base import Pattern

RANDOM = ("hf", "tf", "hf-train", "hf-eval", "uniform", "none")


@dataclass(frozen=True, kw_only=True)
class BigBirdConfig(EncoderConfig):
    """Sizes of BERT, and the blocks that each block sees besides itself.

    >>> BigBirdConfig(block=64, random_blocks=3).short
    704
    """

    family: ClassVar[str] = "BigBird"
    global_tokens: ClassVar[GlobalTokenUse] = "on request"

    vocab_size: int = 50358
    token_types: int = 2
    activation: str = "gelu_new"
    head_style: str = "bigbird"
    norm_eps: float = 1e-12
    block: int = 64
    random_blocks: int = 3
    "Blocks drawn at random for each block, layer and head."
    random: str = "hf"
    """How they are drawn. "hf" is what Hugging Face computes: "hf-train" in training, "hf-eval" (no draw, the
    first block counted more often) in evaluation; the others are the same in both."""
    full_up_to: int | None = None
    "Documents of up to so many tokens get full attention; by default (5 + 2 * random_blocks) * block."
    attention_type: str = "sparse"
    '"sparse", or "full" for all documents.'
    causal: bool = False
    "A decoder: full attention to what came before."
    bias: bool = True
    "Queries, keys and values have biases."
    out_bias: bool = True
    "And so has the output projection."

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("block", self.block, 1)
        whole("random_blocks", self.random_blocks, 0)
        one_of("random", self.random, RANDOM)
        if self.attention_type not in ("sparse", "full"):
            raise bad("attention_type", "sparse or full", self.attention_type)
        if self.full_up_to is not None:
            whole("full_up_to", self.full_up_to, 0)

    @property
    def short(self) -> int:
        """The longest document with full attention."""
        return (5 + 2 * self.random_blocks) * self.block if self.full_up_to is None else self.full_up_to

    def pattern(self, layer: int, *, training: bool, marked: bool = False) -> Pattern:
        """What blocks of a layer see; `marked` tokens, if there are any, see and are seen everywhere."""
        if self.causal:
            return Causal()
        if self.attention_type == "full":
            return Full()
        drawn = ("hf-train" if training else "hf-eval") if self.random == "hf" else self.random
        table = max(self.positions // self.block, 1) * self.block
        seed = 0 if drawn in ("hf-eval", "none") else layer  # where nothing is drawn, all layers share a plan
        size, heads = self.block, self.heads
        randoms = RandomBlocks(size, self.random_blocks, drawn, seed=seed, table=table, heads=heads)
        blocks = (BlockWindow(size) | GlobalBlocks(size)) + randoms
        return ByLength(self.short, Full(), blocks | GlobalTokens() if marked else blocks)

    @property
    def exact_up_to(self) -> int:
        return self.short

    def attention(self, layout: Layout, *, training: bool = False) -> LayerSpecs:
        marked = bool(layout.marked_rows.size)
        patterns = (self.pattern(layer, training=training, marked=marked) for layer in range(self.layers))
        return tuple((AttentionSpec.within("blocks", pattern, layout),) for pattern in patterns)

    def backbone(self) -> "BigBird":
        return BigBird(self)


class BigBird(Encoder):
    """ids (N,) of the documents of a layout to hidden states (N, C).

    A document's pattern follows from its own length, not from its batch mates.

    >>> import torch
    >>> tiny = BigBirdConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, block=2)
    >>> BigBird(tiny).eval()(torch.arange(9), Layout.packed([5, 4])).shape
    torch.Size([9, 8])
    """

    config: BigBirdConfig
    norm_last: ClassVar[bool] = True

    def layer_attention(self, layer: int) -> SelfAttention:
        # No attention dropout: neither the paper's code nor Hugging Face's drops any in the sparse path.
        config = self.config
        return SelfAttention(config.width, config.heads, bias=config.bias, out_bias=config.out_bias)
