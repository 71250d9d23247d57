"""LED and its kin: any of our encoders reads, a decoder writes (Beltagy et al. 2020, section 7)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from longspan.engine.plan import plan
from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.models.body import initialise
from longspan.models.config import LARGEST, EncoderConfig, number
from longspan.models.task import BODIES
from longspan.nn.activations import activation
from longspan.nn.decoder import DecoderLayer, Looks, Rows, Seen
from longspan.nn.embeddings import Embeddings
from longspan.patterns import Causal, Full

IGNORED = -100
"""The label of a row that is not to be learnt."""
TARGETS = 64
"""Rows whose scores of all words stand in memory at once while a loss is computed."""


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    """An encoder of any kind, and the sizes of the decoder; both are equally wide and share their words.

    >>> from longspan.models.longformer import LongformerConfig
    >>> Seq2SeqConfig(encoder=LongformerConfig(types=0, position_offset=0)).width
    768
    """

    encoder: EncoderConfig
    layers: int = 6
    heads: int = 12
    feed_forward: int = 3072
    positions: int = 1024
    "Tokens of the longest text that is written."
    position_offset: int = 0
    "Rows of the position table before position 0 (BART: 2)."
    activation: str = "gelu"
    norm_first: bool = False
    "Norms stand before the blocks, and one behind the last, as in Pegasus."
    scale_embeddings: bool = False
    "Words are multiplied by the square root of the width, as in Pegasus."
    bias: bool = True
    "The projections of attention have biases."
    dropout: float = 0.1
    attention_dropout: float = 0.0
    norm_eps: float = 1e-5
    start_id: int = 2
    "What the decoder is given before the first word."
    bos_id: int = 0
    eos_id: int = 2

    def __post_init__(self) -> None:
        if type(self.encoder) not in BODIES:
            raise bad("encoder", "the config of an encoder", type(self.encoder).__name__)
        whole("layers", self.layers, 1, most=1024)
        for name in ("heads", "feed_forward", "positions"):
            whole(name, getattr(self, name), 1, most=LARGEST)
        whole("position_offset", self.position_offset, 0, most=LARGEST)
        for name in ("start_id", "bos_id", "eos_id"):
            whole(name, getattr(self, name), 0, most=self.vocab_size - 1)
        if self.width % self.heads:
            raise bad("heads", f"a divisor of the width, {self.width}", self.heads)
        activation(self.activation)
        for name in ("dropout", "attention_dropout"):
            number(name, getattr(self, name), 0.0, 1.0, below=True)
        number("norm_eps", self.norm_eps, 1e-20, 1.0)

    @property
    def width(self) -> int:
        return self.encoder.width

    @property
    def vocab_size(self) -> int:
        return self.encoder.vocab_size


class Decoder(nn.Module):
    """ids (N,) of texts, and what was read of the documents they are about, to hidden states (N, C)."""

    def __init__(self, config: Seq2SeqConfig, words: nn.Embedding) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(
            vocab=1,
            width=config.width,
            positions=config.positions,
            types=0,
            offset=config.position_offset,
            eps=config.norm_eps,
            dropout=config.dropout,
            scale=config.width**0.5 if config.scale_embeddings else 1.0,
        )
        self.embeddings.words = words
        self.layers = nn.ModuleList(
            DecoderLayer(
                config.width,
                config.heads,
                config.feed_forward,
                act=config.activation,
                eps=config.norm_eps,
                dropout=config.dropout,
                attention_dropout=config.attention_dropout,
                bias=config.bias,
                norm_first=config.norm_first,
            )
            for _ in range(config.layers)
        )

    def seen(self, memory: Tensor) -> list[Seen]:
        """The keys and values that each layer sees of what was read (K, C)."""
        return [layer.cross.seen(memory) for layer in self._layers]

    def forward(
        self,
        ids: Tensor,
        layout: Layout,
        seen: Sequence[Seen],
        looks: Looks,
        past: Sequence[Rows] | None = None,
    ) -> Tensor:
        x = self.embeddings(ids, layout)
        rows = [None] * len(self.layers) if past is None else past
        for layer, keys, before in zip(self._layers, seen, rows, strict=True):
            x = layer(x, keys, looks, before)
        found: Tensor = x
        return found

    @property
    def _layers(self) -> Any:
        return self.layers


class Seq2Seq(nn.Module):
    """Documents in, texts out.

    >>> from longspan.models.longformer import LongformerConfig
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3, types=0)
    >>> model = Seq2Seq(Seq2SeqConfig(encoder=tiny, layers=2, heads=2, feed_forward=16)).eval()
    >>> documents, texts = Layout.packed([5, 4], marked=[[0], [0]]), Layout.packed([2, 3])
    >>> model(torch.arange(9), documents, torch.arange(5), texts).shape
    torch.Size([5, 9])
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = BODIES[type(config.encoder)](config.encoder)
        self.decoder = Decoder(config, self.encoder.embeddings.words)
        self.words_bias = nn.Buffer(torch.zeros(config.vocab_size))
        initialise(self, config.encoder.init_std)

    def forward(self, ids: Tensor, layout: Layout, written: Tensor, texts: Layout) -> Tensor:
        """Scores of all words for the place behind each row of `written` (N,): (N, vocab)."""
        return self.scores(self.hidden(ids, layout, written, texts))

    def hidden(self, ids: Tensor, layout: Layout, written: Tensor, texts: Layout) -> Tensor:
        """What the decoder makes of the texts `written` about the documents: (N, C)."""
        memory, heads = self.encoder(ids, layout), self.config.heads
        looks = Looks(plan(Causal(), texts, heads=heads), plan(Full(), texts, layout, heads=heads))
        found: Tensor = self.decoder(written, texts, self.decoder.seen(memory), looks)
        return found

    def scores(self, x: Tensor) -> Tensor:
        """(N, C) -> (N, vocab)."""
        return nn.functional.linear(x, self.encoder.embeddings.words.weight, self.words_bias)

    def loss(
        self,
        ids: Tensor,
        layout: Layout,
        labels: Tensor,
        texts: Layout,
        *,
        smoothing: float = 0.0,
    ) -> Tensor:
        """The mean cross entropy of the `labels` (N,), the words of the texts; -100 is not learnt.

        The scores of few rows stand in memory at once; the backward pass computes them again.
        """
        x = self.hidden(ids, layout, shifted(labels, texts, self.config), texts)
        sums = [
            checkpoint(self._loss, rows, wanted, smoothing, use_reentrant=False)
            for rows, wanted in zip(x.split(TARGETS), labels.split(TARGETS), strict=True)
        ]
        return torch.stack(sums).sum() / (labels != IGNORED).sum()

    def _loss(self, x: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        return nn.functional.cross_entropy(
            self.scores(x), labels, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing
        )


def shifted(labels: Tensor, texts: Layout, config: Seq2SeqConfig) -> Tensor:
    """What the decoder is given so that it writes the labels: each text one place on, behind `start_id`."""
    written = labels.roll(1).masked_fill(labels.roll(1) == IGNORED, config.encoder.pad_id)
    first = torch.from_numpy(np.flatnonzero(texts.sites.position == 0)).to(labels.device)
    return written.index_fill(0, first, config.start_id)
