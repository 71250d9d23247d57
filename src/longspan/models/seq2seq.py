"""LED and its kin: any of our encoders reads, a decoder writes (Beltagy et al. 2020, section 7)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longspan.engine.plan import plan
from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.models.body import initialise
from longspan.models.config import LARGEST, EncoderConfig
from longspan.models.encoders import ENCODERS
from longspan.nn.decoder import DecoderLayer, Looks, Rows, Seen
from longspan.nn.embeddings import Embeddings
from longspan.nn.word_loss import IGNORED
from longspan.patterns import Causal, Full


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    """An encoder of any kind, and the sizes of the decoder, which is like it in all else.

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
    bias: bool = True
    "The projections of the decoder's attention have biases."
    start_id: int = 2
    "What the decoder is given before the first word."
    bos_id: int = 0
    eos_id: int = 2

    def __post_init__(self) -> None:
        if type(self.encoder) not in ENCODERS:
            raise bad("encoder", "the config of an encoder", type(self.encoder).__name__)
        if self.encoder.narrow is not None:
            raise bad("narrow", "None where a decoder shares the words", self.encoder.narrow)
        whole("layers", self.layers, 1, most=1024)
        for name in ("heads", "feed_forward", "positions"):
            whole(name, getattr(self, name), 1, most=LARGEST)
        whole("position_offset", self.position_offset, 0, most=LARGEST)
        for name in ("start_id", "bos_id", "eos_id"):
            whole(name, getattr(self, name), 0, most=self.vocab_size - 1)
        if self.width % self.heads:
            raise bad("heads", f"a divisor of the width, {self.width}", self.heads)

    @property
    def width(self) -> int:
        """The width of the encoder, which is the decoder's too."""
        return self.encoder.width

    @property
    def vocab_size(self) -> int:
        """The number of words that encoder and decoder share."""
        return self.encoder.vocab_size


class Decoder(nn.Module):
    """ids (N,) of texts, and what was read of the documents they are about, to hidden states (N, C)."""

    def __init__(self, config: Seq2SeqConfig, words: nn.Embedding) -> None:
        super().__init__()
        self.config, like = config, config.encoder
        self.embeddings = Embeddings(
            vocab=1,
            width=config.width,
            positions=config.positions,
            types=0,
            offset=config.position_offset,
            eps=like.norm_eps,
            dropout=like.dropout,
            scale=config.width**0.5 if like.rescale_embeddings else 1.0,
            norm=not like.norm_first,
        )
        self.embeddings.words = words
        self.layers = nn.ModuleList(
            DecoderLayer(
                config.width,
                config.heads,
                config.feed_forward,
                act=like.activation,
                eps=like.norm_eps,
                dropout=like.dropout,
                attention_dropout=like.attention_dropout,
                activation_dropout=like.activation_dropout,
                bias=config.bias,
                norm_first=like.norm_first,
                closing=like.norm_first and layer == config.layers - 1,
            )
            for layer in range(config.layers)
        )

    def seen(self, memory: Tensor) -> Iterator[Seen]:
        """The keys and values that each layer sees of what was read (K, C)."""
        return (layer.cross.seen(memory) for layer in self._layers)

    def forward(
        self,
        ids: Tensor,
        layout: Layout,
        seen: Iterable[Seen],
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
    """Documents in, texts out; by itself it reads, ids (N,) to hidden states (N, C), like its encoder.

    >>> from longspan.models.longformer import LongformerConfig
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3, types=0)
    >>> model = Seq2Seq(Seq2SeqConfig(encoder=tiny, layers=2, heads=2, feed_forward=16)).eval()
    >>> documents, texts = Layout.packed([5, 4], marked=[[0], [0]]), Layout.packed([2, 3])
    >>> memory = model(torch.arange(9), documents)
    >>> model.written(memory, documents, torch.arange(5), texts).shape
    torch.Size([5, 8])
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = ENCODERS[type(config.encoder)](config.encoder)
        self.decoder = Decoder(config, self.encoder.embeddings.words)
        initialise(self, config.encoder.init_std)

    @property
    def embeddings(self) -> Any:
        return self.encoder.embeddings

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        found: Tensor = self.encoder(ids, layout, types)
        return found

    def written(self, memory: Tensor, layout: Layout, written: Tensor, texts: Layout) -> Tensor:
        """What the decoder makes of texts `written` (N,) about documents that were read (K, C): (N, C)."""
        heads = self.config.heads
        looks = Looks(plan(Causal(), texts, heads=heads), plan(Full(), texts, layout, heads=heads))
        found: Tensor = self.decoder(written, texts, self.decoder.seen(memory), looks)
        return found


def shifted(labels: Tensor, texts: Layout, config: Seq2SeqConfig) -> Tensor:
    """What the decoder is given so that it writes the labels: each text one place on, behind `start_id`."""
    written = labels.roll(1).masked_fill(labels.roll(1) == IGNORED, config.encoder.pad_id)
    first = torch.from_numpy(np.flatnonzero(texts.sites.position == 0)).to(labels.device)
    return written.index_fill(0, first, config.start_id)
