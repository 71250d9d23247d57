"""A model for a task: a backbone with a head."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast, overload

import torch
from torch import Tensor, nn

from longspan.errors import bad
from longspan.families.attentions import shown
from longspan.families.backbone import Backbone, recorded
from longspan.families.config import EncoderConfig, Rule
from longspan.families.habits import Habits, resized_config, resized_decoder
from longspan.families.model_plan import ModelPlan, outside_of_graphs, planned
from longspan.families.notebook import model_html
from longspan.families.padded import (
    BY_TOKEN,
    ChosenRows,
    ModelOutput,
    PaddedBatch,
    PaddedLoss,
    Targets,
    no_loss,
    packed_labels,
    tensor_of,
)
from longspan.layout import Layout, require
from longspan.nn.heads import PoolingHead
from longspan.nn.token_heads import TokenHeads


class TaskModel(Habits):
    """ids (N,), a layout and token types to what the head makes of them: vectors, logits or spans.

    Or as transformers has it: model(input_ids=..., attention_mask=..., labels=...), a padded batch, to a
    ModelOutput.

    >>> import torch
    >>> from longspan.families.longformer.model import LongformerConfig
    >>> from longspan.nn.heads import TokenHead
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3)
    >>> head = TokenHead(8, labels=3, dropout=0.1)
    >>> model = TaskModel(tiny.backbone(), head, "ForTokenClassification").eval()
    >>> model(torch.arange(9), Layout.packed([5, 4], marked=[[0], [0]])).shape
    torch.Size([9, 3])
    """

    global_tokens: Rule = "none"
    "Which tokens are global where a layout does not say, if the family leaves it to the task."

    padded_loss: PaddedLoss = staticmethod(no_loss)
    "The loss of the task."
    problem: str | None = None
    'What a classifier learns: "single", "multi" or "regression"; None: labels tell.'

    def __init__(self, backbone: Backbone, head: nn.Module, architecture: str) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head
        self.architecture = architecture
        "How Hugging Face's classes for it end: ForSequenceClassification, ...; Model for the backbone alone."
        self.spare: dict[str, Tensor] = {}
        "Tensors of the checkpoint that the task does not use, kept for saving."
        self.saved_whole: tuple[str, ...] = ()
        "Parameters that are trained beside an adapter, and stand in its file as they are."
        self.token_heads = TokenHeads()
        "What the checkpoint has beside the model for each token."

    @property
    def config(self) -> EncoderConfig:
        """The config of the encoder."""
        return self.backbone.config.encoder

    @property
    def longest(self) -> int:
        """Tokens that are read at once."""
        return self.config.longest

    @property
    def head_dropout(self) -> float | None:
        """The head's dropout where a checkpoint does not say; None: the backbone's."""
        return None

    @property
    def decodes_words(self) -> bool:
        """Whether the head scores the words of the vocabulary, perhaps with the embeddings' own weights."""
        return hasattr(self.head, "decoder")

    @overload
    def forward(
        self, ids: Tensor, layout: Layout | ModelPlan, token_types: Tensor | None = ...
    ) -> Tensor: ...
    @overload
    def forward(
        self,
        *,
        input_ids: Tensor,
        attention_mask: Tensor | None = ...,
        token_type_ids: Tensor | None = ...,
        global_attention_mask: Tensor | None = ...,
        labels: Tensor | None = ...,
        start_positions: Tensor | None = ...,
        end_positions: Tensor | None = ...,
        output_hidden_states: bool = ...,
        output_attentions: ChosenRows = ...,
    ) -> ModelOutput: ...
    def forward(
        self,
        ids: Tensor | None = None,
        layout: Layout | ModelPlan | None = None,
        token_types: Tensor | None = None,
        *,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
        output_hidden_states: bool = False,
        output_attentions: ChosenRows = False,
    ) -> Tensor | ModelOutput:
        if input_ids is None:
            return self.packed(cast(Tensor, ids), cast(Layout, layout), token_types)
        if ids is not None or layout is not None:
            raise bad("input_ids", "None beside packed ids", "given", "Give one or the other.")
        tensor_of("input_ids", input_ids)
        columns = input_ids, attention_mask, global_attention_mask
        choices = input_ids.shape[1] if input_ids.dim() == 3 else 1
        if choices > 1:  # (B, choices, L) -> (B * choices, L)
            columns = tuple(None if column is None else column.flatten(0, 1) for column in columns)  # type: ignore[assignment]
            token_type_ids = None if token_type_ids is None else token_type_ids.flatten(0, 1)
        batch = PaddedBatch.of(*columns)
        types = None if token_type_ids is None else batch.pack("token_type_ids", token_type_ids)
        packed_ids = batch.pack("input_ids", columns[0])
        look = recorded(self.backbone, output_hidden_states), shown(self.backbone, batch, output_attentions)
        with look[0] as states, look[1] as probabilities:
            result = self._padded_result(batch, packed_ids, types, choices)
        spans = None
        if start_positions is not None and end_positions is not None:
            spans = batch.place(start_positions), batch.place(end_positions)
            labels = start_positions
        if labels is not None:
            outputs = result.pop("packed")
            taken = labels if spans is not None else packed_labels(batch, labels, self.architecture)
            problem = self.problem
            targets = Targets(outputs, batch.layout, taken, spans, choices, problem)
            result = {"loss": self.padded_loss(targets), **result}
        result.pop("packed", None)
        made = ModelOutput(**result)
        if output_hidden_states:
            made["hidden_states"] = tuple(batch.unpack(state) for state in states)
        if output_attentions is not False:
            made["attentions"] = tuple(probabilities)
        return made

    def _padded_result(
        self, batch: PaddedBatch, ids: Tensor, types: Tensor | None, choices: int
    ) -> dict[str, Tensor]:
        """What the head gives, by transformers' names; and as it stands ("packed")."""
        if isinstance(self.head, PoolingHead):
            x = self.backbone(ids, self.marked(batch.layout), types)
            vectors = self.head(x, batch.layout, self.head.weights(ids))
            return {"last_hidden_state": batch.unpack(x), "sentence_embedding": vectors, "packed": vectors}
        outputs = self.packed(ids, batch.layout, types)
        if self.architecture == "ForQuestionAnswering":
            start, end = batch.unpack(outputs).unbind(-1)
            return {"start_logits": start, "end_logits": end, "packed": outputs}
        if self.architecture in BY_TOKEN:
            return {"logits": batch.unpack(outputs), "packed": outputs}
        by_question = outputs.view(-1, choices) if self.architecture == "ForMultipleChoice" else outputs
        return {"logits": by_question, "packed": outputs}

    def packed(self, ids: Tensor, layout: Layout | ModelPlan, token_types: Tensor | None = None) -> Tensor:
        """What the head makes of packed documents."""
        given = self.given(layout)
        x = self.backbone(ids, given, token_types)
        beside = self.head.weights(ids) if isinstance(self.head, PoolingHead) else token_types
        rows = given.rows if isinstance(given, ModelPlan) else given
        return self.head(x, rows, beside)  # type: ignore[no-any-return]

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of words."""
        return self.backbone.word_embeddings

    def resize_token_embeddings(
        self, new_num_tokens: int, pad_to_multiple_of: int | None = None
    ) -> nn.Embedding:
        """Make room for other words, and return the new table; the head that scores words follows.

        Rows that are kept have their weights, new ones the mean of all; a tokenizer is the user's affair.
        """
        if isinstance(self.head, PoolingHead) and self.head.sif is not None:
            raise bad("new_num_tokens", "the present one for a model with SIF weights", new_num_tokens)
        config = resized_config(self.config, new_num_tokens, pad_to_multiple_of)
        decoder = getattr(self.head, "decoder", None)
        tied = decoder is not None and decoder.weight is self.backbone.word_embeddings.weight
        self.backbone.set_vocabulary(config)
        words = self.backbone.word_embeddings
        if decoder is not None:
            resized_decoder(decoder, words, tied)
        return words

    @outside_of_graphs
    def plan(self, layout: Layout) -> ModelPlan:
        """The layout as compiled graphs take it; torch.compile(model, fullgraph=True) is called with it."""
        return self.backbone.plan(self.marked(layout))

    def given(self, layout: Layout | ModelPlan) -> Layout | ModelPlan:
        """What the backbone is given: a plan, or a layout in which the task's global tokens are marked."""
        if isinstance(layout, ModelPlan):
            return layout
        return planned(self, layout) if torch.compiler.is_compiling() else self.marked(layout)

    def marked(self, layout: Layout) -> Layout:
        """The layout with the task's global tokens, if it does not say itself which are marked."""
        if not self.config.marks_by_task(require(layout)) or self.global_tokens == "none":
            return layout
        if self.global_tokens == "first":
            return layout.first_marked
        which = f"given for a task whose global tokens ({self.global_tokens!r}) no ids tell"
        repair = (
            "Reader.prepare() marks them; by hand, Layout.packed(lengths, marked=[...]) does, [] for none."
        )
        raise bad("marked", which, None, repair)

    def _repr_html_(self) -> str:
        kind = f"{type(self.backbone).__name__} with {type(self.head).__name__}"
        return model_html(kind, self.config)

    @property
    def gradient_checkpointing(self) -> bool:
        """Whether only the layers' inputs are kept for the backward pass, and the rest is computed again."""
        return self.backbone.gradient_checkpointing

    @gradient_checkpointing.setter
    def gradient_checkpointing(self, on: bool) -> None:
        self.backbone.gradient_checkpointing = on

    def gradient_checkpointing_enable(self) -> None:
        """Keep only the layers' inputs for the backward pass, in encoder and decoder."""
        self.gradient_checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        """Keep everything for the backward pass, as usual."""
        self.gradient_checkpointing = False


@contextmanager
def evaluating(model: TaskModel) -> Iterator[None]:
    """The model in evaluation mode, and afterwards in the mode it was in."""
    before = model.training
    if before:
        model.eval()
    try:
        yield
    finally:
        if before:
            model.train()
