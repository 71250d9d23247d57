"""Encoder-decoder models: any of our encoders reads, a decoder writes (Beltagy et al. 2020, section 7)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from longspan.engine.plan import plan
from longspan.errors import bad, whole
from longspan.families.backbone import Backbone, init_weights
from longspan.families.config import LARGEST, EncoderConfig
from longspan.families.model_plan import ModelPlan, outside_of_graphs, packed
from longspan.layout import Layout, require
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from longspan.nn.decoder import DecoderLayer, DecoderPlans, KeyValues, KVCache
from longspan.nn.embeddings import Embeddings
from longspan.nn.layers import Layers
from longspan.nn.sites import Rows
from longspan.patterns import Causal, Full


@dataclass(frozen=True, kw_only=True)
class Seq2SeqConfig:
    """An encoder of any family, and the sizes of the decoder, which follows it in all else.

    >>> from longspan.families.longformer.model import LongformerConfig
    >>> Seq2SeqConfig(encoder=LongformerConfig(token_types=0, position_offset=0)).width
    768
    """

    has_decoder: ClassVar[bool] = True

    encoder: EncoderConfig
    layers: int = 6
    heads: int = 12
    feed_forward: int = 3072
    positions: int = 1024
    "Tokens of the longest text that is written."
    position_offset: int = 0
    "Rows of the position table before position 0."
    bias: bool = True
    "The projections of the decoder's attention have biases."
    start_id: int = 2
    "What the decoder is given before the first word."
    bos_id: int = 0
    eos_id: int = 2

    def __post_init__(self) -> None:
        if getattr(self.encoder, "has_decoder", True):
            raise bad("encoder", "the config of an encoder", type(self.encoder).__name__)
        if self.encoder.embedding_size is not None:
            raise bad("embedding_size", "None where a decoder shares the words", self.encoder.embedding_size)
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
        """Size of the hidden states, the same on both sides."""
        return self.encoder.width

    @property
    def vocab_size(self) -> int:
        """Words that both sides share."""
        return self.encoder.vocab_size

    @property
    def stacks(self) -> dict[str, int]:
        """Prefixes of layer names, and how many layers each stack has."""
        return {"encoder.": self.encoder.layers, "decoder.": self.layers}

    @property
    def words_name(self) -> str:
        """The parameter that holds the word embeddings."""
        return f"encoder.{self.encoder.words_name}"

    def backbone(self) -> "Seq2Seq":
        """A new model of this config, without a head."""
        return Seq2Seq(self)


class DecoderInputs(NamedTuple):
    """What a decoder reads of a layout of texts."""

    places: Layout | Tensor
    "The layout, or the positions (N,)."
    plans: DecoderPlans


class Decoder(nn.Module):
    """ids (N,) of texts, and what the encoder made of their documents, to hidden states (N, C)."""

    def __init__(self, config: Seq2SeqConfig, words: nn.Embedding) -> None:
        super().__init__()
        self.config, like = config, config.encoder
        self.embeddings = Embeddings(
            like.layer_config,
            vocab=1,
            positions=config.positions,
            offset=config.position_offset,
            rescale=like.rescale_embeddings,
            norm=like.norms_embeddings,
        )
        self.embeddings.words = words
        self.layers = Layers(
            DecoderLayer(
                like.layer_config,
                config.heads,
                config.feed_forward,
                attention_dropout=like.attention_dropout,
                bias=config.bias,
                final=number == config.layers - 1,
            )
            for number in range(config.layers)
        )

    def key_values(self, memory: Tensor) -> Iterator[KeyValues]:
        """Each layer's keys and values of the encoder's rows (K, C)."""
        return (cast(DecoderLayer, layer).cross.key_values(memory) for layer in self.layers)

    def forward(
        self,
        ids: Tensor,
        layout: Layout | Tensor,
        memory: Tensor | Sequence[KeyValues],
        plans: DecoderPlans,
        caches: Sequence[KVCache] | None = None,
    ) -> Tensor:
        """`memory` is what the encoder made of its rows (K, C), or their keys and values for each layer."""
        x: Tensor = self.embeddings(ids, layout)
        for number, layer in enumerate(self.layers):
            seen = memory if isinstance(memory, Tensor) else memory[number]
            if self.layers.recomputes():
                x = self.layers.checkpointed(layer, x, seen, plans)
            else:
                x = layer(x, seen, plans, None if caches is None else caches[number])
        return x


class Seq2Seq(Backbone):
    """Documents in, texts out; by itself it reads, ids (N,) to hidden states (N, C), like its encoder.

    >>> from longspan.families.longformer.model import LongformerConfig
    >>> sizes = {"vocab_size": 9, "width": 8, "layers": 2, "heads": 2, "feed_forward": 16}
    >>> tiny = LongformerConfig(**sizes, radius=3, token_types=0)
    >>> model = Seq2Seq(Seq2SeqConfig(encoder=tiny, layers=2, heads=2, feed_forward=16)).eval()
    >>> documents, texts = Layout.packed([5, 4], marked=[[0], [0]]), Layout.packed([2, 3])
    >>> memory = model(torch.arange(9), documents)
    >>> model.decode(memory, documents, torch.arange(5), texts).shape
    torch.Size([5, 8])
    """

    config: Seq2SeqConfig

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = config.encoder.backbone()
        self.decoder = Decoder(config, self.encoder.word_embeddings)
        init_weights(self, config.encoder.init_std)

    def forward(self, ids: Tensor, layout: Layout | ModelPlan, token_types: Tensor | None = None) -> Tensor:
        memory: Tensor = self.encoder(ids, layout, token_types)
        return memory

    def inputs(self, layout: Layout) -> object:
        return self.encoder.inputs(layout)

    @outside_of_graphs
    def plan(self, layout: Layout, texts: Layout | None = None) -> ModelPlan:
        """The documents, and the texts about them, as compiled graphs take them."""
        planned, device = self.encoder.plan(layout), self.word_embeddings.weight.device
        if texts is None:
            return planned
        return replace(planned, decoder=packed(self.decoder_inputs(layout, texts), device))

    def decoder_inputs(self, documents: Layout, texts: Layout) -> DecoderInputs:
        """What the decoder reads of texts about documents."""
        heads = self.config.heads
        cross = plan(Full(), require(texts, "texts"), documents, heads=heads)
        return DecoderInputs(texts, DecoderPlans(plan(Causal(), texts, heads=heads), cross))

    def decode(
        self, memory: Tensor, documents: Layout | ModelPlan, ids: Tensor, texts: Layout | None = None
    ) -> Tensor:
        """The decoder's hidden states (N, C) for texts `ids` (N,) about documents that were read (K, C).

        `documents` is their layout, and `texts` that of the texts; or it is a plan of both.
        """
        if isinstance(documents, ModelPlan):
            places, plans = cast(DecoderInputs, documents.decoder)
        else:
            places, plans = self.decoder_inputs(documents, require(texts, "texts"))
        hidden: Tensor = self.decoder(ids, places, memory, plans)
        return hidden


def shift_right(labels: Tensor, texts: Layout | Rows, config: Seq2SeqConfig) -> Tensor:
    """The decoder's input for these labels: each text moved on by one place, `start_id` first."""
    shifted = labels.roll(1).masked_fill(labels.roll(1) == IGNORE_INDEX, config.encoder.pad_id)
    if isinstance(texts, Rows):
        return torch.where(texts.positions == 0, config.start_id, shifted)
    first = torch.from_numpy(np.flatnonzero(texts.sites.position == 0)).to(labels.device)
    return shifted.index_fill(0, first, config.start_id)
