"""ETC from a short encoder: its tokens are read as before, and global tokens begin as tokens do."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import nn

from longspan.errors import bad, whole
from longspan.families.config import EncoderConfig
from longspan.families.etc.model import Etc, EtcConfig
from longspan.families.lengthening import Lengthening, Option, Short, require_full_attention
from longspan.families.task_model import TaskModel


def config(short: Short, options: Mapping[str, Option]) -> EncoderConfig:
    """The config of the new model: absolute positions, projections shared, no global tokens unless asked for.

    With a `block` there is a global token for each so many tokens. In the vocabulary it is what comes first
    in every text of RoBERTa's, or the first unused word of BERT's, as in ETC.
    """
    require_full_attention(short)
    old = short.config
    plain = not old.buckets and old.embedding_size is None
    short.require(plain, "a BERT or RoBERTa that sees everything, for etc")
    if old.token_types == 0:
        raise bad("pattern", "another one for a model without token types, as before a decoder", "etc")
    radius, block = short.radius(options.get("radius")), options.get("block")
    if not isinstance(radius, int):
        raise bad("radius", "one number for all layers, for etc", radius)
    word = 0 if old.head_style == "roberta" else min(1, old.vocab_size - 1)
    new = EtcConfig(
        **short.fields(),
        absolute=True,
        units="blocks",
        radius=radius,
        block=0 if block is None else whole("block", block, 0),
        long_type=0,
        sentence_id=word,
        question_id=word,
        paragraph_id=word,
    )
    return short.keep_head(new)


def start(model: TaskModel, source: EncoderConfig) -> None:
    """What global tokens have of their own starts as what tokens have; labels of pairs say nothing yet."""
    known = dict(model.named_parameters(remove_duplicate=False))
    for name, parameter in known.items():
        path, _, leaf = name.rpartition(".")
        if "_relative." in name:
            value = torch.zeros(parameter.shape, dtype=parameter.dtype)
        elif "global_" in name:
            value = known[name.replace("global_", "", 1)].detach().clone()
        else:
            continue
        setattr(model.get_submodule(path), leaf, nn.Parameter(value))


def notes(config: EncoderConfig) -> dict[str, str]:
    """How many global tokens the model has by itself, in words."""
    assert isinstance(config, EtcConfig)
    count = f"one for each {config.block} tokens, at most {config.most_globals}" if config.block else "none"
    return {"global tokens": count}


@contextmanager
def without_global_tokens(model: TaskModel) -> Iterator[None]:
    """The model with an empty global stream, and then as it was."""
    (etc,) = (part for part in model.backbone.modules() if isinstance(part, Etc))
    before = etc.config
    etc.config = replace(before, block=0)
    try:
        yield
    finally:
        etc.config = before


TO_ETC = Lengthening(
    name="etc",
    config=config,
    options={
        "radius": "tokens seen on each side (256)",
        "block": "tokens for each global token (there are none)",
    },
    start=start,
    compared=without_global_tokens,
    copied=lambda source: ("global stream from the tokens' one",),
    notes=notes,
)
