"""Encoder-decoder models for tasks: one writes about documents, one reads each document twice."""

from collections.abc import Callable
from typing import cast, overload

import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import bad, no_tensor
from longspan.families.backbone import Backbone
from longspan.families.config import Rule
from longspan.families.model_plan import ModelPlan, outside_of_graphs, planned
from longspan.families.padded import ModelOutput, PaddedBatch, tensor_of
from longspan.families.seq2seq.model import Decoder, Seq2Seq, shift_right
from longspan.families.task_model import TaskModel
from longspan.layout import Layout, require
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX, chunked_cross_entropy
from longspan.nn.heads import LMHead
from longspan.nn.linear import matrix, wide


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

    writes: Callable[..., Tensor] | None = None
    "What generates; the task knows."

    def __init__(self, backbone: Seq2Seq, head: LMHead) -> None:
        super().__init__(backbone, head, "ForConditionalGeneration")

    @property
    def encoder(self) -> Backbone:
        return self.backbone.encoder

    @property
    def decoder(self) -> Decoder:
        return self.backbone.decoder

    @overload  # type: ignore[override]
    def forward(
        self, ids: Tensor, layout: Layout | ModelPlan, decoder_ids: Tensor, texts: Layout | None = ...
    ) -> Tensor: ...
    @overload
    def forward(
        self,
        *,
        input_ids: Tensor,
        attention_mask: Tensor | None = ...,
        global_attention_mask: Tensor | None = ...,
        decoder_input_ids: Tensor | None = ...,
        decoder_attention_mask: Tensor | None = ...,
        labels: Tensor | None = ...,
    ) -> ModelOutput: ...
    def forward(
        self,
        ids: Tensor | None = None,
        layout: Layout | ModelPlan | None = None,
        decoder_ids: Tensor | None = None,
        texts: Layout | None = None,
        *,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor | ModelOutput:
        """Logits (N, vocab) for the word after each of `decoder_ids` (N,), the tokens of `texts`.

        A plan in the place of the layout tells of the texts, too. Or as transformers has it, padded: `labels`
        (B, T), whose words are shifted for the decoder, or `decoder_input_ids`.
        """
        if input_ids is None:
            given = cast(Tensor, ids), cast(Layout, layout), cast(Tensor, decoder_ids)
            return self.logits(self.hidden(*given, texts))
        documents = PaddedBatch.of(tensor_of("input_ids", input_ids), attention_mask, global_attention_mask)
        read = documents.pack("input_ids", input_ids), documents.layout
        if labels is not None:
            written = PaddedBatch.of(tensor_of("labels", labels), _until_last(labels != IGNORE_INDEX))
            words = written.pack("labels", labels)
            inputs = shift_right(words, written.layout, self.backbone.config)
            if decoder_input_ids is not None:
                inputs = written.pack("decoder_input_ids", decoder_input_ids)
            x = self.hidden(*read, inputs, written.layout)
            logits = self.logits(x)
            loss = F.cross_entropy(wide(logits), words, ignore_index=IGNORE_INDEX)
            return ModelOutput(loss=loss, logits=written.unpack(logits))
        if decoder_input_ids is None:
            raise bad("labels", "given, or decoder_input_ids", None, "generate() writes without them.")
        written = PaddedBatch.of(decoder_input_ids, decoder_attention_mask)
        x = self.hidden(*read, written.pack("decoder_input_ids", decoder_input_ids), written.layout)
        return ModelOutput(logits=written.unpack(self.logits(x)))

    def generate(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        **options: object,
    ) -> Tensor:
        """Texts about each document (B, T), the start token first; `options` are GenerationConfig's."""
        if self.writes is None:
            raise bad("model", "built for a task to generate", "built by hand", "Use longspan.load or build.")
        return self.writes(self, input_ids, attention_mask, global_attention_mask, **options)

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
        self,
        ids: Tensor,
        layout: Layout,
        labels: Tensor,
        texts: Layout,
        *,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> Tensor:
        """Cross-entropy of the `labels` (N,), the words of the texts; -100 does not count.

        The mean, or with reduction="sum" the sum.

        The logits of few rows are in memory at once.
        """
        if not isinstance(labels, Tensor):
            raise no_tensor("labels", labels)
        x = self.hidden(ids, layout, shift_right(labels, texts, self.backbone.config), texts)
        (weight, _), bias = matrix(self.head.decoder, x), self.head.bias[0]
        return chunked_cross_entropy(
            x, weight, bias, labels, label_smoothing=label_smoothing, reduction=reduction
        )


def _until_last(seen: Tensor) -> Tensor:
    """(B, T): everything up to the last word of each text; one without any keeps its first place."""
    kept = seen.flip(1).cumsum(1).flip(1) > 0
    kept[:, 0] = True
    return kept


class Seq2SeqTaskModel(TaskModel):
    """The decoder reads the document again, shifted by one place, and the head reads the decoder."""

    backbone: Seq2Seq

    @property
    def longest(self) -> int:
        return min(self.config.longest, self.backbone.config.positions)

    @property
    def head_dropout(self) -> float | None:
        return 0.0

    def packed(self, ids: Tensor, layout: Layout | ModelPlan, token_types: Tensor | None = None) -> Tensor:
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
