"""ETC from a short encoder: its tokens are read as before, and global tokens begin as tokens do."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace

import torch

from longspan.checkpoints.fit import put
from longspan.errors import bad, whole
from longspan.models.bert import BertConfig
from longspan.models.config import EncoderConfig
from longspan.models.etc import EtcConfig
from longspan.models.seq2seq import Seq2Seq
from longspan.models.task import TaskModel


def etc_config(old: EncoderConfig, to: int, radius: int | tuple[int, ...], block: int | None) -> EtcConfig:
    """The config of the new model: absolute positions, projections shared, no global tokens unless asked for.

    With a `block` there is a global token for each so many tokens. In the vocabulary it is what stands first
    in every text of RoBERTa's, or the first unused word of BERT's, as in ETC.
    """
    if type(old) is not BertConfig or old.radius is not None or old.narrow is not None:
        kind = type(old).__name__.removesuffix("Config")
        kind += "" if old.narrow is None else " with narrow embeddings"
        raise bad("source", "a BERT or RoBERTa that sees everything, for etc", kind)
    if old.types == 0:
        raise bad("pattern", "another one for a model without token types, as before a decoder", "etc")
    if not isinstance(radius, int):
        raise bad("radius", "one number for all layers, for etc", radius)
    word = 0 if old.position_offset else min(1, old.vocab_size - 1)
    same = {one.name: getattr(old, one.name) for one in fields(EncoderConfig)}
    return EtcConfig(
        **same | {"positions": whole("to", to, 1), "head_activation": "usual"},
        absolute=True,
        units="blocks",
        radius=radius,
        block=0 if block is None else whole("block", block, 0),
        long_type=0,
        sentence_id=word,
        question_id=word,
        paragraph_id=word,
    )


def begin_global_stream(model: TaskModel) -> None:
    """What global tokens have of their own starts as what tokens have; labels of pairs say nothing yet."""
    known = dict(model.named_parameters(remove_duplicate=False))
    for name, parameter in known.items():
        if "_relative." in name:
            put(model, name, torch.zeros(parameter.shape, dtype=parameter.dtype))
        elif "global_" in name:
            put(model, name, known[name.replace("global_", "", 1)].detach().clone())


def global_tokens(config: EncoderConfig) -> str | None:
    """How many global tokens a model has by itself, in words; None if it has no stream of them."""
    if not isinstance(config, EtcConfig):
        return None
    return f"one for each {config.block} tokens, at most {config.most_globals}" if config.block else "none"


@contextmanager
def without_global_tokens(model: TaskModel) -> Iterator[None]:
    """The model with an empty global stream, and then as it was."""
    body, config = model.body.encoder if isinstance(model.body, Seq2Seq) else model.body, model.config
    if isinstance(config, EtcConfig):
        body.config = replace(config, block=0)
    try:
        yield
    finally:
        body.config = config  # type: ignore[assignment]
