"""Fill: the words behind mask tokens."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypedDict

import numpy as np
import torch
from torch import Tensor

from longspan.errors import InputError, bad, no_tensor, whole
from longspan.families.backbone import Backbone, Encoder
from longspan.families.task_model import TaskModel
from longspan.metrics.classification import accuracy
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX, chunked_cross_entropy
from longspan.nn.heads import MaskedLanguageHead, WordHead
from longspan.nn.linear import is_plain
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, Found
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.labels import Labeling, with_column
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, Results, Step, by_document, hidden
from longspan.shapes import FloatArray, IntArray
from longspan.tasks.base import Task
from longspan.tasks.losses import Loss, cross_entropy, labels_of, weighted_mean
from longspan.text.encoding import Encoding
from longspan.text.tokenizer import Tokenizer


class Guess(TypedDict):
    """A word for a mask, how likely it is, and the text with it."""

    score: float
    token: int
    token_str: str
    sequence: str


def build(backbone: Backbone, *, labels: int = 2) -> TaskModel:
    """A model with a new head."""
    c, ending = backbone.config.encoder, "ForMaskedLM"
    words, act = backbone.word_embeddings, c.activation_in_head(ending)
    own = c.own_head(ending, len(words.weight), words)
    return TaskModel(backbone, own or MaskedLanguageHead(c.width, words, act=act, eps=c.norm_eps), ending)


def words(model: TaskModel, batch: Batch, rows: Tensor) -> Tensor:
    """The logits of all words at some rows of a batch: (rows, vocab). No others are computed."""
    logits: Tensor = model.head(hidden_rows(model, batch, rows), batch.layout)
    return logits


def hidden_rows(model: TaskModel, batch: Batch, rows: Tensor) -> Tensor:
    """What the model makes of some tokens (rows, C), before any head."""
    if isinstance(model.backbone, Encoder):
        states: Tensor = model.backbone(batch.ids, batch.layout, batch.token_types, rows)
        return states
    return hidden(model, batch)[rows]


def loss(model: TaskModel, batch: Batch, labels: Tensor) -> Tensor:
    """Cross-entropy at the rows whose label (N,) is not -100; 0 where there is none."""
    return weighted_mean(*_summed(model, batch, labels))


def loss_sum(model: TaskModel, batch: Batch) -> Loss:
    """The sum over the words of a batch that have a label, and how many these are."""
    total, weight = _summed(model, batch, labels_of(batch, Tensor))
    return Loss(total, float(weight))


def _summed(model: TaskModel, batch: Batch, labels: Tensor) -> tuple[Tensor, Tensor]:
    if not isinstance(labels, Tensor):
        raise no_tensor("labels", labels)
    if labels.shape != batch.ids.shape:
        raise bad("labels", f"of shape {tuple(batch.ids.shape)} like the ids", tuple(labels.shape))
    rows = (labels != IGNORE_INDEX).nonzero().squeeze(1)
    return summed_loss(model, batch, hidden_rows(model, batch, rows), labels[rows]), torch.tensor(
        rows.numel()
    )


def summed_loss(model: TaskModel, batch: Batch, x: Tensor, labels: Tensor) -> Tensor:
    """The summed cross-entropy of words at rows with these states (M, C); few logits are held at once."""
    head = model.head
    if isinstance(head, MaskedLanguageHead | WordHead) and is_plain(head.decoder):
        states = head.states(x) if isinstance(head, MaskedLanguageHead) else x
        decoder = head.decoder
        return chunked_cross_entropy(states, decoder.weight, decoder.bias, labels, reduction="sum")
    return cross_entropy(head(x, batch.layout), labels)[0]


def with_masks(tokenizer: Tokenizer, taken: Inputs, prompt: str) -> list[Encoding]:
    """The tokens of each text, in which a written mask token is one."""
    return tokenizer.promoting.encode_many(taken.items)


def targets(given: Labeling) -> list[Any]:
    """For each text the right token ids, one for each of its masks; -100 for all other tokens."""
    columns = []
    for right, document in zip(given.labels, given.documents, strict=True):
        masks = np.flatnonzero(document.encoding.ids == given.tokenizer.mask)
        words = inputs.listed("labels", right, "a list of token ids for each text")
        if len(words) != masks.size:
            raise bad("labels", f"{masks.size} token ids, one for each mask", f"{len(words)} of them")
        column = np.full(len(document.encoding), IGNORE_INDEX)
        column[masks] = [whole("labels", word, 0, most=given.tokenizer.vocab_size - 1) for word in words]
        columns += [column[piece.rows] for piece in document.pieces]
    return columns


def encoded(tokenizer: Tokenizer, texts: Sequence[str], names: Sequence[str]) -> list[Encoding]:
    """Texts whose mask tokens are masks."""
    if tokenizer.mask is None:
        raise InputError("The tokenizer has no mask token. Load a masked language model.")
    encodings = tokenizer.promoting.encode_many(texts)
    for name, text, encoding in zip(names, texts, encodings, strict=True):
        if tokenizer.mask not in encoding.ids:
            mask = tokenizer.names["mask"]
            raise bad(name, f"a text with {mask}", text[:60], f"Write {mask} where a word is to be found.")
    return encodings


def guesses(tokenizer: Tokenizer, top_k: int) -> Step:
    """For every token of each piece (n, 2, top_k): the likeliest words of masks and their probabilities."""

    def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
        rows = torch.isin(batch.ids, batch.ids.new_tensor([tokenizer.mask])).nonzero().squeeze(1)
        likely = words(model, batch, rows).float().softmax(-1)
        likely = likely[:, : tokenizer.vocab_size]  # a model may have more rows than its tokenizer has words
        best = likely.topk(min(top_k, likely.shape[1]))
        # float32 holds ids exactly: no vocabulary is larger than 2**24.
        pairs = torch.stack([best.indices.float(), best.values], dim=1)
        table = pairs.new_zeros(len(batch.ids), *pairs.shape[1:])
        return by_document(table.index_copy(0, rows, pairs), batch)

    return step


def decode(
    tokenizer: Tokenizer, name: str, document: Document, outputs: Sequence[FloatArray]
) -> list[list[Guess]]:
    """For each mask the likeliest words first."""
    ids = document.encoding.ids
    rows, table = document.joined(outputs)
    masks = np.flatnonzero(ids == tokenizer.mask)
    if not np.isin(masks, rows).all():
        raise bad(name, "read as far as its masks", "cut before", "Use overflow='window'.")
    alone = masks.size == 1
    guessed = []
    for mask in masks.tolist():
        words, likely = table[rows == mask][0]
        best = zip(words.astype(int).tolist(), likely.tolist(), strict=True)
        guessed.append([_guess(tokenizer, ids, mask, word, score, alone) for word, score in best])
    return guessed


def _guess(tokenizer: Tokenizer, ids: IntArray, mask: int, word: int, score: float, alone: bool) -> Guess:
    filled = ids.copy()
    filled[mask] = word
    # With several masks the others would vanish with the special tokens.
    sequence = tokenizer.decode(filled[filled != tokenizer.pad], special=not alone)
    return {"score": score, "token": word, "token_str": tokenizer.decode([word]), "sequence": sequence}


def fill(
    pipeline: Pipeline, texts: object, top_k: int, options: Mapping[str, object]
) -> Results[Found[Guess] | Found[list[Guess]]]:
    """The likeliest words for the mask of each text, or for each of its masks."""
    taken = inputs.texts("texts", texts)
    step, tokenizer = guesses(pipeline.tokenizer, whole("top_k", top_k, 1)), pipeline.tokenizer
    read = pipeline.read(FILL, taken, step, options, encoded(tokenizer, taken.items, taken.names))
    results: list[Found[Guess] | Found[list[Guess]]] = []
    for name, (document, outputs) in zip(taken.names, read, strict=True):
        masks = decode(tokenizer, name, document, outputs)
        alone = len(masks) == 1
        results.append(Found(masks[0], document.reading) if alone else Found(masks, document.reading))
    return Results(results, taken.single)


FILL = Task(
    name="fill",
    aliases=("fill-mask",),
    architecture="ForMaskedLM",
    build=build,
    backbones="encoder",
    inputs=partial(inputs.texts, "texts"),
    loss=loss,
    loss_sum=loss_sum,
    decode=decode,
    metric=accuracy,
    encode=with_masks,
    targets=targets,
    padded_loss=lambda given: weighted_mean(*cross_entropy(given.outputs, given.labels)),
    attach=with_column,
)
