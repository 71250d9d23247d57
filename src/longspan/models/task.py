"""A model for a task: a body and the head that stands on it."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.models.bert import Bert, BertConfig
from longspan.models.bigbird import BigBird, BigBirdConfig
from longspan.models.body import initialise
from longspan.models.config import EncoderConfig
from longspan.models.etc import Etc, EtcConfig
from longspan.models.longformer import Longformer, LongformerConfig
from longspan.models.mpnet import MPNet, MPNetConfig
from longspan.models.poolingformer import Poolingformer, PoolingformerConfig
from longspan.models.stitched import Stitched, StitchedConfig
from longspan.nn.heads import (
    DeepSpanHead,
    FirstTokenHead,
    MaskedLanguageHead,
    PoolingHead,
    SpanHead,
    TokenHead,
)

TASKS = ("encode", "fill", "classify", "tag", "answer", "choose")
Body = Longformer | BigBird | Bert | MPNet | Stitched | Etc | Poolingformer


class TaskModel(nn.Module):
    """ids (N,), a layout and types to what the head gives: vectors, scores of labels, words or spans.

    >>> import torch
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
        return self.body.config

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        x = self.body(ids, layout, types)
        seen = self.head.weights(ids) if isinstance(self.head, PoolingHead) else types
        return self.head(x, layout, seen)  # type: ignore[no-any-return]


BODIES: dict[type[EncoderConfig], Callable[[Any], Body]] = {
    LongformerConfig: Longformer,
    BigBirdConfig: BigBird,
    BertConfig: Bert,
    MPNetConfig: MPNet,
    StitchedConfig: Stitched,
    EtcConfig: Etc,
    PoolingformerConfig: Poolingformer,
}


def build(config: EncoderConfig, task: str, *, labels: int = 2, **options: Any) -> TaskModel:
    """A model with new weights; `labels` counts the classes, `options` go to the head of "encode"."""
    if type(config) not in BODIES:
        raise bad("config", f"one of {', '.join(kind.__name__ for kind in BODIES)}", type(config).__name__)
    body = BODIES[type(config)](config)
    head = _head(body, task, whole("labels", labels, 1, most=2**20), options)
    model = TaskModel(body, head, task)
    words = body.embeddings.words.weight.data.clone() if task == "fill" else None
    initialise(head, config.init_std)
    if words is not None:
        body.embeddings.words.weight.data = words  # tied to the head, which has just been drawn anew
    return model


def _head(body: Body, task: str, labels: int, options: dict[str, Any]) -> nn.Module:
    c = body.config
    if task == "encode":
        salient = isinstance(c, StitchedConfig) and c.salience
        return PoolingHead(c.width, words=c.vocab_size if salient else None, **options)
    act = head_activation(c, task)
    if task == "fill":
        return MaskedLanguageHead(c.width, body.embeddings.words, act=act, eps=c.norm_eps)
    if task == "classify":
        # RoBERTa's family drops before the dense layer too; BERT's is its pooler.
        roberta = c.position_offset > 0 or isinstance(c, BigBirdConfig)
        return FirstTokenHead(c.width, labels, act=act, dropout=c.dropout, drop_first=roberta)
    if task == "choose":
        return FirstTokenHead(c.width, 1, act=act, dropout=c.dropout, drop_first=False)
    if task == "tag":
        return TokenHead(c.width, labels, dropout=c.dropout)
    if task == "answer":
        if isinstance(c, BigBirdConfig) and not c.bert_heads:
            return DeepSpanHead(c.width, c.feed_forward, act=c.activation, eps=c.norm_eps, dropout=c.dropout)
        return SpanHead(c.width)
    raise bad("task", f"one of {', '.join(TASKS)}", task)


def head_activation(c: EncoderConfig, task: str) -> str:
    """What stands behind the dense layer of a head.

    >>> head_activation(BigBirdConfig(), "classify"), head_activation(BertConfig(), "classify")
    ('gelu_new', 'tanh')
    """
    if c.head_activation != "usual":
        return c.head_activation
    if task == "fill":
        # RoBERTa's family decodes through gelu, whatever its layers have.
        roberta = isinstance(c, BertConfig) and c.position_offset > 0
        gelu = roberta or isinstance(c, (LongformerConfig, MPNetConfig))
        return "gelu" if gelu else c.activation
    bigbird = isinstance(c, BigBirdConfig) and not c.bert_heads
    return c.activation if bigbird and task == "classify" else "tanh"
