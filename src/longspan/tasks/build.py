"""New models of any config, for any task."""

from typing import Any, Literal, overload

from torch import nn

from longspan.errors import bad, whole
from longspan.models.bert import BertConfig
from longspan.models.bigbird import BigBirdConfig
from longspan.models.body import initialise
from longspan.models.config import EncoderConfig
from longspan.models.encoders import ENCODERS, Encoder
from longspan.models.longformer import LongformerConfig
from longspan.models.mpnet import MPNetConfig
from longspan.models.seq2seq import Seq2Seq, Seq2SeqConfig
from longspan.models.stitched import StitchedConfig
from longspan.models.task import ModelConfig, TaskModel
from longspan.models.writer import Rereader, Writer
from longspan.nn.heads import (
    DeepSpanHead,
    FirstTokenHead,
    LastTokenHead,
    MaskedLanguageHead,
    NextWordHead,
    PoolingHead,
    SpanHead,
    TokenHead,
)

READING = ("encode", "fill", "classify", "tag", "answer", "choose")
"""What an encoder can do."""
WRITING = ("summarise", "encode", "classify", "answer")
"""What it can do with a decoder."""
TASKS = (*READING, "summarise")


@overload
def build(config: Seq2SeqConfig, task: Literal["summarise"]) -> Writer: ...


@overload
def build(config: ModelConfig, task: str, *, labels: int = 2, **options: Any) -> TaskModel: ...


def build(config: ModelConfig, task: str, *, labels: int = 2, **options: Any) -> TaskModel:
    """A model with new weights; `labels` counts the classes, `options` go to the head of "encode"."""
    whole("labels", labels, 1, most=2**20)
    if isinstance(config, Seq2SeqConfig):
        model = _with_decoder(Seq2Seq(config), task, labels, options)
    elif type(config) in ENCODERS:
        body = ENCODERS[type(config)](config)
        model = TaskModel(body, _head(body, task, labels, options), task)
    else:
        known = ", ".join(kind.__name__ for kind in (*ENCODERS, Seq2SeqConfig))
        raise bad("config", f"one of {known}", type(config).__name__)
    words = model.body.embeddings.words.weight.data.clone() if task in ("fill", "summarise") else None
    initialise(model.head, model.config.init_std)
    if words is not None:
        model.body.embeddings.words.weight.data = words  # tied to the head, which has just been drawn anew
    return model


def _with_decoder(body: Seq2Seq, task: str, labels: int, options: dict[str, Any]) -> TaskModel:
    c = body.config
    if task == "summarise":
        return Writer(body, NextWordHead(body.embeddings.words))
    if task == "encode":
        return TaskModel(body, PoolingHead(c.width, **options), task)
    if task == "classify":
        head = LastTokenHead(c.width, labels, act="tanh", dropout=c.encoder.dropout, drop_first=True)
        return Rereader(body, head, task)
    if task == "answer":
        return Rereader(body, SpanHead(c.width), task)
    raise bad("task", f"one of {', '.join(WRITING)}", task, "The model has a decoder.")


def _head(body: Encoder, task: str, labels: int, options: dict[str, Any]) -> nn.Module:
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
    raise bad("task", f"one of {', '.join(READING)}", task, "The model has no decoder.")


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
