"""Late interaction: queries and documents as vectors of their tokens, compared by MaxSim (ColBERT)."""

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import bad, whole
from longspan.families.attention_spec import UNSEEN
from longspan.families.backbone import Backbone
from longspan.families.task_model import TaskModel
from longspan.metrics.regression import spearman
from longspan.nn.max_sim import max_sim
from longspan.nn.token_projection import ProjectionHead
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, Reading, prepare
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.options import Options
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, by_document, head_output, run
from longspan.shapes import BoolArray, FloatArray, IntArray, Matrix
from longspan.tasks.base import Ranking, Task
from longspan.text.encoding import Encoding
from longspan.text.tokenizer import Tokenizer

FIELD = "late_interaction"
"""Where config.json holds the settings."""
AT_ONCE = 1 << 24
"""Numbers of documents that are compared at once."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How queries and documents become tokens, by the names that PyLate has for it."""

    query_prefix: str = "[Q] "
    document_prefix: str = "[D] "
    "A token behind the first one, if the vocabulary has it; else a text before the text."
    query_length: int = 32
    "Tokens that a query is filled up to with mask tokens; longer ones are read whole."
    do_query_expansion: bool = True
    attend_to_expansion_tokens: bool = False
    "Whether the mask tokens are seen, by each other and by the query."
    skiplist_words: tuple[str, ...] = tuple(string.punctuation)
    "Tokens of documents that have no vector."

    def __post_init__(self) -> None:
        for name in ("query_prefix", "document_prefix"):
            inputs.string(name, getattr(self, name))
        whole("query_length", self.query_length, 1, most=2**20)
        for name in ("do_query_expansion", "attend_to_expansion_tokens"):
            if not isinstance(getattr(self, name), bool):
                raise bad(name, "True or False", getattr(self, name))
        words = self.skiplist_words
        if not isinstance(words, tuple) or not all(isinstance(word, str) for word in words):
            raise bad("skiplist_words", "a list of words", words)

    @classmethod
    def of(cls, config: Mapping[str, object]) -> "Settings":
        """Those that a config.json holds; ColBERT's where it holds none."""
        stated: Any = config.get(FIELD, {})
        if not isinstance(stated, Mapping) or not stated.keys() <= cls.__dataclass_fields__.keys():
            raise bad(FIELD, f"some of {', '.join(cls.__dataclass_fields__)}", stated)
        words = stated.get("skiplist_words")
        return cls(**dict(stated) | ({"skiplist_words": tuple(words)} if isinstance(words, list) else {}))

    def as_dict(self) -> dict[str, object]:
        """Plain data for config.json."""
        return asdict(self) | {"skiplist_words": list(self.skiplist_words)}


def build(backbone: Backbone, *, labels: int = 2, size: int = 128) -> TaskModel:
    """A model with a new projection."""
    head = ProjectionHead(backbone.config.encoder.width, size)
    return TaskModel(backbone, head, "ForLateInteraction")


def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
    """The token vectors (n, D) of each piece."""
    return by_document(head_output(model, batch), batch)


class Prefixed(NamedTuple):
    """Texts as tokens, behind what tells a model whether they are queries or documents."""

    encodings: list[Encoding]
    before: int
    "Characters that precede each text, where the prefix is no token."
    sizes: list[int]
    "Tokens of each that are not filled up."

    @property
    def unseen(self) -> list[BoolArray]:
        """Which tokens of each are filled up."""
        pairs = zip(self.encodings, self.sizes, strict=True)
        return [np.arange(len(encoding)) >= size for encoding, size in pairs]


def as_documents(tokenizer: Tokenizer, texts: Sequence[str], settings: Settings) -> Prefixed:
    """The tokens of documents."""
    return _prefixed(tokenizer, texts, settings.document_prefix)


def as_queries(tokenizer: Tokenizer, texts: Sequence[str], settings: Settings) -> Prefixed:
    """The tokens of queries, filled up with mask tokens if the settings say so."""
    plain = _prefixed(tokenizer, texts, settings.query_prefix)
    if not settings.do_query_expansion:
        return plain
    mask = _expansion(tokenizer)
    return plain._replace(
        encodings=[_expanded(encoding, settings.query_length, mask) for encoding in plain.encodings]
    )


def skipped_ids(tokenizer: Tokenizer, settings: Settings) -> IntArray:
    """The tokens of documents that have no vector."""
    ids = (tokenizer.id_of(word) for word in settings.skiplist_words)
    return np.array([index for index in ids if index is not None and index != tokenizer.unk], np.int64)


def read_queries(
    pipeline: Pipeline, names: Sequence[str], queries: Prefixed, settings: Settings, options: Options
) -> list[tuple[Document, Matrix]]:
    """Queries, and the vectors (n, D) of their tokens, those that they are filled up with included."""
    documents = prepare(pipeline.model, LATE_INTERACTION, names, queries.encodings, options)
    tags = None
    if settings.do_query_expansion and not settings.attend_to_expansion_tokens:
        tags = [
            {UNSEEN: (unseen[piece.rows] if unseen.any() else np.zeros(len(piece.rows))).astype(np.int32)}
            for document, unseen in zip(documents, queries.unseen, strict=True)
            for piece in document.pieces
        ]
    outputs = run(pipeline.model, documents, options, step, tags=tags)
    pairs = zip(documents, outputs, strict=True)
    return [(document, document.joined(pieces)[1]) for document, pieces in pairs]


def query_tokens(
    pipeline: Pipeline, taken: Inputs, settings: Settings, changes: Mapping[str, object]
) -> list[Matrix]:
    """The vectors (n, D) of the tokens of each query, those that it is expanded by included."""
    options = pipeline.options.but(**{**changes, "overflow": "error", "progress": False})
    queries = as_queries(pipeline.tokenizer, taken.items, settings)
    return [vectors for _, vectors in read_queries(pipeline, taken.names, queries, settings, options)]


def document_tokens(
    pipeline: Pipeline, taken: Inputs, settings: Settings, changes: Mapping[str, object]
) -> Iterator[tuple[Matrix, Reading]]:
    """The vectors (n, D) of each document's tokens, but of those on the skip list, and what was read."""
    tokenizer = pipeline.tokenizer
    if pipeline.options.overflow == "error":
        changes = {"overflow": "window"} | dict(changes)
    encodings = as_documents(tokenizer, taken.items, settings).encodings
    skipped = skipped_ids(tokenizer, settings)
    for document, outputs in pipeline.read(LATE_INTERACTION, taken, step, changes, encodings):
        yield decode(document, outputs, skipped), document.reading


def decode(document: Document, outputs: Sequence[FloatArray], skipped: IntArray) -> Matrix:
    """The vectors of the tokens of a document; each from the window where it is most central."""
    rows, vectors = document.joined(outputs)
    kept: Matrix = vectors[~np.isin(document.encoding.ids[rows], skipped)]
    return kept


def all_with_all(queries: Sequence[FloatArray], documents: Sequence[FloatArray]) -> Matrix:
    """(Q, D): the sum over a query's tokens (m, C) of the largest product with a token (n, C) of a document.

    >>> all_with_all([np.eye(2, dtype=np.float32)], [np.array([[1, 0], [0, 0.5]], np.float32)]).tolist()
    [[1.5]]
    """
    found = np.empty((len(queries), len(documents)), np.float32)
    done = 0
    for some in _groups(documents):
        tokens = np.ascontiguousarray(np.concatenate(some), np.float32)
        ends = np.cumsum([len(one) for one in some])
        starts = np.append(0, ends[:-1])
        for row, query in zip(found, queries, strict=True):
            row[done : done + len(some)] = max_sim(query, tokens, None, starts, ends).sum(1)
        done += len(some)
    return found


def _groups(documents: Iterable[FloatArray]) -> Iterator[list[FloatArray]]:
    """Documents that are compared at once, which takes a copy of them."""
    group: list[FloatArray] = []
    size = 0
    for document in documents:
        group.append(document)
        size += document.size
        if size >= AT_ONCE:
            yield group
            group, size = [], 0
    if group:
        yield group


def scores(
    pipeline: Pipeline, pairs: Inputs, config: Mapping[str, object], changes: Mapping[str, object]
) -> Iterator[tuple[float, Reading]]:
    """MaxSim of each pair; a query that several pairs have is read once."""
    settings, asked = Settings.of(config), list(dict.fromkeys(query for query, _ in pairs.items))
    queries = Inputs(asked, [f"query {query[:60]!r}" for query in asked], single=False)
    vectors = dict(zip(asked, query_tokens(pipeline, queries, settings, changes), strict=True))
    texts = pairs._replace(items=[text for _, text in pairs.items])
    for (query, _), (tokens, reading) in zip(
        pairs.items, document_tokens(pipeline, texts, settings, changes), strict=True
    ):
        yield float(all_with_all([vectors[query]], [tokens])[0, 0]), reading


def loss(scores: Tensor) -> Tensor:
    """Cross-entropy of finding the document of each query, by MaxSim of all with all (B, B).

    >>> loss(torch.zeros(2, 2))
    tensor(0.6931)
    """
    if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
        raise bad("scores", "of shape (B, B)", tuple(scores.shape))
    return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


def _check(model: TaskModel, config: Mapping[str, object]) -> None:
    Settings.of(config)


def _prefixed(tokenizer: Tokenizer, texts: Sequence[str], prefix: str) -> Prefixed:
    """The tokens of each text behind the prefix."""
    names = (prefix, prefix.strip()) if prefix.strip() else ()
    index = next((found for name in names if (found := tokenizer.id_of(name)) is not None), None)
    if index is None:
        encodings, before = tokenizer.encode_many([prefix + text for text in texts]), len(prefix)
    else:
        encodings, before = [_inserted(one, 1, [index]) for one in tokenizer.encode_many(texts)], 0
    return Prefixed(encodings, before, [len(encoding) for encoding in encodings])


def _expansion(tokenizer: Tokenizer) -> int:
    index = tokenizer.mask if tokenizer.mask is not None else tokenizer.eos
    if index is None:
        raise bad("tokenizer", "one with a mask token for query expansion", "without", "Add one.")
    return index


def _expanded(encoding: Encoding, length: int, mask: int) -> Encoding:
    return _inserted(encoding, len(encoding), [mask] * max(0, length - len(encoding)))


def _inserted(encoding: Encoding, place: int, ids: Iterable[int]) -> Encoding:
    """The encoding with tokens at a place that belong to no text."""
    new = np.array(list(ids), np.int64)
    zeros = np.zeros(len(new), np.int64)
    return replace(
        encoding,
        ids=np.insert(encoding.ids, place, new),
        types=np.insert(encoding.types, place, zeros),
        offsets=np.insert(encoding.offsets, place, np.zeros((len(new), 2), np.int64), axis=0),
        source=np.insert(encoding.source, place, np.full(len(new), -1, np.int8)),
    )


LATE_INTERACTION = Task(
    name="late-interaction",
    aliases=("multi-vector", "colbert"),
    verb="rank",
    architecture="ForLateInteraction",
    modules=("out",),
    build=build,
    head_sizes={"size": "out.weight"},
    backbones="encoder",
    inputs=inputs.documents,
    loss=loss,
    decode=decode,
    metric=spearman,
    ranking=Ranking(scores, _check),
)
