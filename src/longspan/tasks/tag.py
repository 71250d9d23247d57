"""Tag: a label for every token, and the entities that tokens of like labels make."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, NotRequired, TypedDict, cast

import numpy as np
from torch import Tensor

from longspan.datasets.forms import TAGS
from longspan.errors import bad, one_of
from longspan.families.backbone import Backbone
from longspan.families.task_model import TaskModel
from longspan.metrics.classification import set_f1
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from longspan.nn.heads import TokenHead
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, Found
from longspan.pipeline.labels import Labeling, with_column
from longspan.pipeline.options import ReadingOptions
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, Results, by_document, head_output
from longspan.shapes import FloatArray, IntArray
from longspan.tasks.base import Task
from longspan.tasks.losses import Loss, cross_entropy, labels_of, weighted_mean
from longspan.text.tokenizer import Tokenizer

STRATEGIES = ("none", "simple", "first", "average", "max")
"""Tokens as they are, or entities: of tokens, or of words labeled by their first, mean or surest token."""


class Entity(TypedDict):
    """A labeled token (entity, index), or an entity of several tokens (entity_group)."""

    entity: NotRequired[str]
    entity_group: NotRequired[str]
    score: float
    index: NotRequired[int]
    word: str
    start: int
    end: int


class TagOptions(ReadingOptions, total=False):
    """How entities are made of tokens, beside how documents are read."""

    aggregation_strategy: str
    ignore_labels: Sequence[str]


def build(backbone: Backbone, *, labels: int) -> TaskModel:
    """A model with a new head."""
    c, ending = backbone.config.encoder, "ForTokenClassification"
    own = c.own_head(ending, labels, backbone.word_embeddings)
    return TaskModel(backbone, own or TokenHead(c.width, labels, dropout=c.dropout), ending)


def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
    """The labels' probabilities (n, L) of each token, of each piece."""
    return by_document(head_output(model, batch).float().softmax(-1), batch)


def loss(logits: Tensor, labels: Tensor, *, class_weights: Tensor | None = None) -> Tensor:
    """Cross-entropy of the logits (N, L) at the rows whose label (N,) is not -100; 0 where there is none.

    With `class_weights` (L,) it is torch's weighted mean.

    >>> import torch
    >>> loss(torch.zeros(3, 2), torch.tensor([1, -100, 0]))
    tensor(0.6931)
    """
    return weighted_mean(*cross_entropy(logits, labels, class_weights))


def loss_sum(model: TaskModel, batch: Batch, *, class_weights: Tensor | None = None) -> Loss:
    """The sum over the tokens of a batch that have a label, and how many these are, or what they weigh."""
    labels = labels_of(batch, Tensor)
    total, weight = cross_entropy(head_output(model, batch), labels, class_weights)
    return Loss(total, float(weight))


def targets(given: Labeling) -> list[Any]:
    """For each text a list of {start, end, entity}, or (start, end, entity), in characters: tokens in there
    have that class, or B-, then I- and its name; others have "O", and special tokens none (-100).
    """
    return [
        column[piece.rows]
        for entities, document in zip(given.labels, given.documents, strict=True)
        for column in [_labels(given, entities, document)]
        for piece in document.pieces
    ]


def _labels(given: Labeling, entities: object, document: Document) -> IntArray:
    encoding, classes = document.encoding, list(given.classes)
    inside = encoding.source >= 0
    column = np.where(inside, classes.index("O") if "O" in classes else IGNORE_INDEX, IGNORE_INDEX)
    begin, end = encoding.offsets.T
    for entity in inputs.listed("labels", entities, "a list of {start, end, entity} for each text"):
        names = ("start", "end", "entity")
        first, last, name = (entity[n] for n in names) if isinstance(entity, Mapping) else entity
        rows = np.flatnonzero(inside & (begin < last) & (end > first))
        if not rows.size:
            raise bad("labels", "entities that hold a token", entity, "Count characters of the text.")
        plain = name in classes or not {f"B-{name}", f"I-{name}"} & set(classes)
        parts = (name, name) if plain else (f"B-{name}", f"I-{name}")
        column[rows] = given.number(parts[1] if parts[1] in classes else parts[0])
        column[rows[0]] = given.number(parts[0] if parts[0] in classes else parts[1])
    return column


class Token(NamedTuple):
    """A token or word with the probabilities of its labels."""

    row: int
    ids: list[int]
    likely: FloatArray
    start: int
    end: int


class Tagger(NamedTuple):
    """How entities are written."""

    tokenizer: Tokenizer
    labels: Sequence[str]
    strategy: str
    ignored: Sequence[str]
    prefix: str
    "What marks a token that continues a word, as ## does; empty where tokens do not tell."


def tagger(tokenizer: Tokenizer, labels: Sequence[str], strategy: str, ignored: Sequence[str]) -> Tagger:
    """The tagger for a strategy."""
    by_words = strategy in ("first", "average", "max")
    model = json.loads(tokenizer.to_json())["model"] if by_words else {}
    return Tagger(tokenizer, labels, strategy, ignored, model.get("continuing_subword_prefix") or "")


def decode(how: Tagger, text: str, document: Document, outputs: Sequence[FloatArray]) -> list[Entity]:
    """The labeled tokens or entities of a document; a token is read where it stands most centrally."""
    encoding = document.encoding
    rows, table = document.joined(outputs)
    tokens = [
        Token(int(row), [int(encoding.ids[row])], likely, *map(int, encoding.offsets[row]))
        for row, likely in zip(rows, table, strict=True)
        if encoding.source[row] >= 0
    ]
    if how.strategy == "none":
        plain = (_plain(how, text, token) for token in tokens)
        return [entity for entity in plain if entity["entity"] not in how.ignored]
    if how.strategy != "simple":
        words = _runs(tokens, lambda before, token: not _inside_word(how, text, token))
        tokens = [_word(how.strategy, word) for word in words]
    entities = (_entity(how, text, group) for group in _runs(tokens, partial(_begins_entity, how)))
    return [entity for entity in entities if entity["entity_group"] not in how.ignored]


def _plain(how: Tagger, text: str, token: Token) -> Entity:
    best = int(token.likely.argmax())
    return {
        "entity": how.labels[best],
        "score": float(token.likely[best]),
        "index": token.row,
        "word": _unknown(how, text, [token]) or how.tokenizer.tokens(token.ids)[0],
        "start": token.start,
        "end": token.end,
    }


def _runs(tokens: Iterable[Token], begins: Callable[[Token, Token], bool]) -> list[list[Token]]:
    """Tokens that belong together; `begins` says of the last one and a new one whether a run begins."""
    runs: list[list[Token]] = []
    for token in tokens:
        if not runs or begins(runs[-1][-1], token):
            runs.append([])
        runs[-1].append(token)
    return runs


def _inside_word(how: Tagger, text: str, token: Token) -> bool:
    """Whether a token continues a word, by Hugging Face's rules."""
    if not how.prefix:
        return token.start > 0 and " " not in text[token.start - 1 : token.start + 1]
    written = how.tokenizer.tokens(token.ids)[0]
    return token.ids[0] != how.tokenizer.unk and len(written) != token.end - token.start


def _word(strategy: str, word: Sequence[Token]) -> Token:
    """One token for a word, with the probabilities that the strategy takes."""
    if strategy == "first":
        likely = word[0].likely
    elif strategy == "max":
        likely = max((token.likely for token in word), key=lambda likely: float(likely.max()))
    else:
        likely = np.mean([token.likely for token in word], axis=0)
    ids = [index for token in word for index in token.ids]
    return Token(word[0].row, ids, likely, word[0].start, word[-1].end)


def _begins_entity(how: Tagger, before: Token, token: Token) -> bool:
    """Whether neighbours have other labels; B- begins anew."""
    last, label = (how.labels[int(one.likely.argmax())] for one in (before, token))
    return label.startswith("B-") or label.removeprefix("I-") != re.sub("^[BI]-", "", last)


def _entity(how: Tagger, text: str, group: Sequence[Token]) -> Entity:
    label = how.labels[int(group[0].likely.argmax())]
    return {
        "entity_group": label.split("-", 1)[-1],
        "score": float(np.mean([token.likely.max() for token in group])),
        "word": _unknown(how, text, group) or how.tokenizer.decode([i for token in group for i in token.ids]),
        "start": group[0].start,
        "end": group[-1].end,
    }


def _unknown(how: Tagger, text: str, group: Sequence[Token]) -> str:
    """What stands in the text, where the vocabulary cannot write it."""
    known = all(how.tokenizer.unk not in token.ids for token in group)
    return "" if known else text[group[0].start : group[-1].end]


def tag(
    pipeline: Pipeline, texts: object, labels: Sequence[str], options: TagOptions
) -> Results[Found[Entity]]:
    """The entities of each text."""
    taken, rest = inputs.texts("texts", texts), dict(options)
    strategy = one_of("aggregation_strategy", rest.pop("aggregation_strategy", "none"), STRATEGIES)
    ignored = cast(Sequence[str], rest.pop("ignore_labels", ("O",)))
    read = pipeline.read(TAG, taken, step, rest)
    how = tagger(pipeline.tokenizer, labels, strategy, ignored)
    results = [
        Found(decode(how, text, document, outputs), document.reading)
        for text, (document, outputs) in zip(taken.items, read, strict=True)
    ]
    return Results(results, taken.single)


TAG = Task(
    name="tag",
    aliases=("token-classification", "ner"),
    architecture="ForTokenClassification",
    build=build,
    backbones="encoder",
    inputs=partial(inputs.texts, "texts"),
    loss=loss,
    loss_sum=loss_sum,
    decode=decode,
    metric=set_f1,
    targets=targets,
    form=TAGS,
    padded_loss=lambda given: loss(given.outputs, given.labels),
    attach=with_column,
    has_labels=True,
    head_dropout=True,
)
