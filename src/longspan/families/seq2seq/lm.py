"""Encoder-decoder models for tasks: one writes about documents, one reads each document twice."""

import torch
from torch import Tensor

from longspan.errors import no_tensor
from longspan.families.backbone import Backbone
from longspan.families.config import Rule
from longspan.families.model_plan import ModelPlan, outside_of_graphs, planned
from longspan.families.seq2seq.model import Decoder, Seq2Seq, shift_right
from longspan.families.task_model import TaskModel
from longspan.layout import Layout, require
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
    global_tokens: Rule = "first"

    def __init__(self, backbone: Seq2Seq, head: LMHead) -> None:
        super().__init__(backbone, head, "ForConditionalGeneration")

    @property
    def encoder(self) -> Backbone:
        return self.backbone.encoder

    @property
    def decoder(self) -> Decoder:
        return self.backbone.decoder

    def forward(  # type: ignore[override]
        self, ids: Tensor, layout: Layout | ModelPlan, decoder_ids: Tensor, texts: Layout | None = None
    ) -> Tensor:
        """Logits (N, vocab) for the word after each of `decoder_ids` (N,), the tokens of `texts`.

        A plan in the place of the layout tells of the texts, too.
        """
        return self.logits(self.hidden(ids, layout, decoder_ids, texts))

    def hidden(
        self, ids: Tensor, layout: Layout | ModelPlan, decoder_ids: Tensor, texts: Layout | None = None
    ) -> Tensor:
        """The decoder's hidden states (N, C)."""
        given: Layout | ModelPlan
        if isinstance(layout, ModelPlan):
            given = layout
        else:
            texts = require(texts, "texts")
            given = planned(self, layout, texts) if torch.compiler.is_compiling() else self.marked(layout)
        return self.backbone.decode(self.backbone(ids, given), given, decoder_ids, texts)

    @outside_of_graphs
    def plan(self, layout: Layout, texts: Layout) -> ModelPlan:  # type: ignore[override]
        """Documents and the texts about them as compiled graphs take them."""
        return self.backbone.plan(self.marked(layout), texts)

    def logits(self, x: Tensor) -> Tensor:
        """(N, C) -> (N, vocab)."""
        logits: Tensor = self.head(x)
        return logits

    def loss(
        self, ids: Tensor, layout: Layout, labels: Tensor, texts: Layout, *, label_smoothing: float = 0.0
    ) -> Tensor:
        """Mean cross-entropy of the `labels` (N,), the words of the texts; -100 does not count.

        The logits of few rows are in memory at once.
        """
        if not isinstance(labels, Tensor):
            raise no_tensor("labels", labels)
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

    def forward(self, ids: Tensor, layout: Layout | ModelPlan, token_types: Tensor | None = None) -> Tensor:
        given = self.given(layout)
        rows = given.rows if isinstance(given, ModelPlan) else given
        again = shift_right(ids, rows, self.backbone.config)
        texts = None if isinstance(given, ModelPlan) else given
        x = self.backbone.decode(self.backbone(ids, given, token_types), given, again, texts)
        scores: Tensor = self.head(x, rows)
        return scores

    @outside_of_graphs
    def plan(self, layout: Layout) -> ModelPlan:
        """The layout, which the decoder reads as well, as compiled graphs take it."""
        marked = self.marked(layout)
        return self.backbone.plan(marked, marked)
