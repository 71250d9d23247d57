"""Encoder-decoder models for tasks: one writes about documents, one reads each document twice."""

from dataclasses import replace

from torch import Tensor

from longspan.errors import no_tensor
from longspan.families.backbone import Backbone
from longspan.families.seq2seq.model import Decoder, Seq2Seq, shift_right
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.chunked_cross_entropy import chunked_cross_entropy
from longspan.nn.heads import LMHead


class Seq2SeqLM(TaskModel):
    """Documents, and texts written about them so far, to logits for the next words.

    >>> import torch
    >>> from longspan.families.longformer.model import LongformerConfig
    >>> from longspan.families.seq2seq.model import Seq2SeqConfig
    >>> sizes = {"vocab_size": 9, "width": 8, "layers": 2, "heads": 2, "feed_forward": 16}
    >>> tiny = LongformerConfig(**sizes, radius=3, token_types=0)
    >>> backbone = Seq2Seq(Seq2SeqConfig(encoder=tiny, layers=2, heads=2, feed_forward=16))
    >>> model = Seq2SeqLM(backbone, LMHead(backbone.word_embeddings)).eval()
    >>> documents, texts = Layout.packed([5, 4], marked=[[0], [0]]), Layout.packed([2, 3])
    >>> model(torch.arange(9), documents, torch.arange(5), texts).shape
    torch.Size([5, 9])
    """

    backbone: Seq2Seq
    head: LMHead

    def __init__(self, backbone: Seq2Seq, head: LMHead) -> None:
        super().__init__(backbone, head, "ForConditionalGeneration")

    @property
    def encoder(self) -> Backbone:
        return self.backbone.encoder

    @property
    def decoder(self) -> Decoder:
        return self.backbone.decoder

    def forward(  # type: ignore[override]
        self, ids: Tensor, layout: Layout, decoder_ids: Tensor, texts: Layout
    ) -> Tensor:
        """Logits (N, vocab) for the word after each of `decoder_ids` (N,)."""
        return self.logits(self.hidden(ids, layout, decoder_ids, texts))

    def hidden(self, ids: Tensor, layout: Layout, decoder_ids: Tensor, texts: Layout) -> Tensor:
        """The decoder's hidden states (N, C)."""
        return self.backbone.decode(self.backbone(ids, layout), layout, decoder_ids, texts)

    def logits(self, x: Tensor) -> Tensor:
        """(N, C) -> (N, vocab)."""
        logits: Tensor = self.head(x)
        return logits

    def with_global_first(self, layout: Layout) -> Layout:
        """The layout with each document's first token marked, if none is and the family was trained so."""
        if layout.marked_rows.size or not self.config.global_first:
            return layout
        site = layout.sites
        return Layout(replace(site, marked=site.exists & (site.position == 0)), layout.lengths)

    def loss(
        self,
        ids: Tensor,
        layout: Layout,
        labels: Tensor,
        texts: Layout,
        *,
        label_smoothing: float = 0.0,
        global_first: bool = True,
    ) -> Tensor:
        """Mean cross-entropy of the `labels` (N,), the words of the texts; -100 does not count.

        Where no token is marked, `global_first` marks the first of each document, if the family does so.
        The logits of few rows are in memory at once.
        """
        if not isinstance(labels, Tensor):
            raise no_tensor("labels", labels)
        layout = self.with_global_first(layout) if global_first else layout
        x = self.hidden(ids, layout, shift_right(labels, texts, self.backbone.config), texts)
        weight, bias = self.head.decoder.weight, self.head.bias[0]
        return chunked_cross_entropy(x, weight, bias, labels, label_smoothing=label_smoothing)


class Seq2SeqTaskModel(TaskModel):
    """The decoder reads the document again, shifted by one place, and the head reads the decoder."""

    backbone: Seq2Seq

    @property
    def longest(self) -> int:
        return min(self.config.longest, self.backbone.config.positions)

    @property
    def head_dropout(self) -> float | None:
        return 0.0

    def forward(self, ids: Tensor, layout: Layout, token_types: Tensor | None = None) -> Tensor:
        again = shift_right(ids, layout, self.backbone.config)
        x = self.backbone.decode(self.backbone(ids, layout, token_types), layout, again, layout)
        scores: Tensor = self.head(x, layout)
        return scores
