"""A model for a task: a body and the head that stands on it."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from longspan.layout import Layout
from longspan.models.config import EncoderConfig
from longspan.models.encoders import Encoder
from longspan.models.seq2seq import Seq2Seq, Seq2SeqConfig
from longspan.nn.heads import PoolingHead

Body = Encoder | Seq2Seq
ModelConfig = EncoderConfig | Seq2SeqConfig


class TaskModel(nn.Module):
    """ids (N,), a layout and types to what the head gives: vectors, scores of labels, words or spans.

    >>> import torch
    >>> from longspan.models.build import build
    >>> from longspan.models.longformer import LongformerConfig
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3)
    >>> model = build(tiny, "classify", labels=3).eval()
    >>> model(torch.arange(9), Layout.packed([5, 4], marked=[[0], [0]])).shape
    torch.Size([2, 3])
    """

    def __init__(self, body: Body, head: nn.Module, task: str) -> None:
        super().__init__()
        self.body, self.head, self.task = body, head, task
        self.spare: dict[str, Tensor] = {}  # of a checkpoint, kept for saving though the task does not use it

    @property
    def config(self) -> EncoderConfig:
        """Of what reads."""
        return self.body.config.encoder if isinstance(self.body, Seq2Seq) else self.body.config

    @property
    def longest(self) -> int:
        """Tokens that are read at once."""
        return self.config.longest

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        x = self.body(ids, layout, types)
        seen = self.head.weights(ids) if isinstance(self.head, PoolingHead) else types
        return self.head(x, layout, seen)  # type: ignore[no-any-return]


@contextmanager
def evaluating(model: TaskModel) -> Iterator[None]:
    """A model without dropout, and then as it was."""
    before = model.training
    if before:
        model.eval()
    try:
        yield
    finally:
        if before:
            model.train()
