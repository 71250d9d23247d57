"""A model for a task: a backbone with a head."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from longspan.errors import bad
from longspan.families.backbone import Backbone
from longspan.families.config import EncoderConfig, Rule
from longspan.families.model_plan import ModelPlan, outside_of_graphs, planned
from longspan.layout import Layout, require
from longspan.nn.heads import PoolingHead


class TaskModel(nn.Module):
    """ids (N,), a layout and token types to what the head makes of them: vectors, logits or spans.

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

    def __init__(self, backbone: Backbone, head: nn.Module, architecture: str) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head
        self.architecture = architecture
        "How Hugging Face's classes for it end: ForSequenceClassification, ...; Model for the backbone alone."
        self.spare: dict[str, Tensor] = {}
        "Tensors of the checkpoint that the task does not use, kept for saving."

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

    def forward(self, ids: Tensor, layout: Layout | ModelPlan, token_types: Tensor | None = None) -> Tensor:
        given = self.given(layout)
        x = self.backbone(ids, given, token_types)
        beside = self.head.weights(ids) if isinstance(self.head, PoolingHead) else token_types
        rows = given.rows if isinstance(given, ModelPlan) else given
        return self.head(x, rows, beside)  # type: ignore[no-any-return]

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
