"""A model for a task: a backbone with a head."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from longspan.families.backbone import Backbone
from longspan.families.config import EncoderConfig
from longspan.layout import Layout
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

    def forward(self, ids: Tensor, layout: Layout, token_types: Tensor | None = None) -> Tensor:
        x = self.backbone(ids, layout, token_types)
        beside = self.head.weights(ids) if isinstance(self.head, PoolingHead) else token_types
        return self.head(x, layout, beside)  # type: ignore[no-any-return]


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
