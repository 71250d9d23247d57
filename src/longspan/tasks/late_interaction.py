"""Late interaction: queries and documents as vectors of their tokens, compared by MaxSim (ColBERT)."""

import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.errors import bad, whole
from longspan.families.attention_spec import UNSEEN
from longspan.families.backbone import Backbone
from longspan.families.task_model import TaskModel, evaluating
from longspan.nn.token_projection import ProjectionHead
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, Reading, prepare
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.packing import Batch, pack
from longspan.pipeline.run import Pipeline, by_document, head_output, on
from longspan.shapes import FloatArray, IntArray, Matrix
from longspan.tasks.base import Ranking, Task
from longspan.tasks.metrics import spearman
from longspan.text.encoding import Encoding
from longspan.text.tokenizer import Tokenizer

FIELD = "late_interaction"
"""Where config.json holds the settings."""


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


def query_tokens(
    pipeline: Pipeline, taken: Inputs, settings: Settings, changes: Mapping[str, object]
) -> list[Matrix]:
    """The vectors (n, D) of the tokens of each query, those that it is expanded by included."""
    options = pipeline.options.but(**{**changes, "overflow": "error"})
    encodings = _encodings(pipeline.tokenizer, taken, settings.query_prefix)
    sizes = [len(encoding) for encoding in encodings]
    if settings.do_query_expansion:
        mask = _expansion(pipeline.tokenizer)
        encodings = [_expanded(encoding, settings.query_length, mask) for encoding in encodings]
    documents = prepare(pipeline.model, LATE_INTERACTION, taken.names, encodings, options)
    if not documents:
        return []
    unseen = [np.arange(len(one)) >= n for one, n in zip(encodings, sizes, strict=True)]
    hidden = settings.do_query_expansion and not settings.attend_to_expansion_tokens
    model = pipeline.model
    typed = model.config.reads_token_types(model.architecture)
    batches = pack(
        [encoding.ids for encoding in encodings],
        budget=1 if options.deterministic else options.budget,
        marked=[np.flatnonzero(document.marked) for document in documents],
        token_types=[encoding.types for encoding in encodings] if typed else None,
        tags=[{UNSEEN: column.astype(np.int32)} for column in unseen] if hidden else None,
    )
    vectors: dict[int, Matrix] = {}
    with evaluating(model), torch.no_grad():
        for batch in batches:
            for index, rows in zip(batch.index, step(model, on(batch, model)), strict=True):
                vectors[index] = rows.float().cpu().numpy()
    return [vectors[index] for index in range(len(documents))]


def document_tokens(
    pipeline: Pipeline, taken: Inputs, settings: Settings, changes: Mapping[str, object]
) -> Iterator[tuple[Matrix, Reading]]:
    """The vectors (n, D) of each document's tokens, but of those on the skip list, and what was read."""
    tokenizer = pipeline.tokenizer
    if pipeline.options.overflow == "error":
        changes = {"overflow": "window"} | dict(changes)
    encodings = _encodings(tokenizer, taken, settings.document_prefix)
    ids = (tokenizer.id_of(word) for word in settings.skiplist_words)
    skipped = np.array([index for index in ids if index is not None and index != tokenizer.unk], np.int64)
    for document, outputs in pipeline.read(LATE_INTERACTION, taken, step, changes, encodings):
        yield decode(document, outputs, skipped), document.reading


def decode(document: Document, outputs: Sequence[FloatArray], skipped: IntArray) -> Matrix:
    """The vectors of the tokens of a document; each from the window where it is most central."""
    rows, vectors = document.joined(outputs)
    kept: Matrix = vectors[~np.isin(document.encoding.ids[rows], skipped)]
    return kept


def max_sim(query: FloatArray, document: FloatArray) -> float:
    """The sum over the query's tokens (m, D) of the largest product with a token (n, D), exact in float32.

    >>> max_sim(np.eye(2, dtype=np.float32), np.array([[1, 0], [0, 0.5]], np.float32))
    1.5
    """
    rows, tokens = torch.from_numpy(query), torch.from_numpy(document)
    return float((tokens @ rows.T).amax(0).sum())  # (n, m) -> (m,)


def all_with_all(queries: Sequence[FloatArray], documents: Sequence[FloatArray]) -> Matrix:
    """(Q, D): `max_sim` of each query with each document."""
    found = [[max_sim(query, document) for document in documents] for query in queries]
    return np.array(found, np.float32).reshape(len(queries), len(documents))


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
        yield max_sim(vectors[query], tokens), reading


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


def _encodings(tokenizer: Tokenizer, taken: Inputs, prefix: str) -> list[Encoding]:
    """The tokens of each text behind the prefix."""
    names = (prefix, prefix.strip()) if prefix.strip() else ()
    index = next((found for name in names if (found := tokenizer.id_of(name)) is not None), None)
    if index is None:
        return tokenizer.encode_many([prefix + text for text in taken.items])
    return [_inserted(encoding, 1, [index]) for encoding in tokenizer.encode_many(taken.items)]


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
