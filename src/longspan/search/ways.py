"""Ways of reading for an index: how models of a kind make vectors of documents, of tokens and of queries."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from torch import Tensor

from longspan.families.task_model import TaskModel
from longspan.pipeline.documents import ReadingRules, prepare
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import hidden, run
from longspan.shapes import FloatArray, IntArray
from longspan.tasks.encode import (
    ENCODE,
    EVERYTHING,
    merged,
    normalized,
    pooling_of,
    projected,
    states,
    weights_of,
)
from longspan.text.encoding import Encoding
from longspan.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from longspan.reader import Reader


class QueryVectors(NamedTuple):
    """A query as the model reads it."""

    vector: FloatArray
    "(C,) of length 1."
    tokens: FloatArray
    "(Q, D), as the model leaves them; D is the width of tokens, which may be another than that of vectors."
    parts: FloatArray
    "(Q, C): the same as parts of such a vector."
    offsets: IntArray
    "(Q, 2): the characters of the query that each token stands for; -1 for none."
    tokenizer: Tokenizer
    skipped: IntArray
    "Ids of tokens that passages have no vectors of."
    own: bool = False
    "Whether the model itself compares tokens: the mean of their largest products is its own score."


class Prepared(NamedTuple):
    """Texts as tokens."""

    encodings: list[Encoding]
    before: int
    "Characters that precede each text."


@dataclass(frozen=True)
class Way:
    """How a model reads."""

    rules: ReadingRules
    documents: Callable[[Sequence[str]], Prepared]
    "The tokens of texts, with what the model wants before them."
    query: Callable[[str], QueryVectors]
    rows: Callable[[TaskModel, Batch], Tensor]
    "(N, D): a vector for each token."
    weights: Callable[[TaskModel, Batch], Tensor | None]
    "(N,): how much each token counts in the vector of its document; None: all alike."
    pooling: str
    "How the vector of a document is made of those of its tokens."
    skipped: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    "Ids of tokens that have no vector of their own."
    settings: str = ""
    "What shapes its vectors beside its weights, config, tokenizer and prompts."
    needs_tokens: bool = False
    "Whether the vectors of tokens are what the model is for."


def by_vectors(reader: "Reader") -> Way:
    """How a model reads that was made for one vector of a text, or for anything else."""
    prompts = reader.prompts
    before = next((prompts[kind] for kind in ("document", "passage", "corpus") if kind in prompts), "")
    how, _ = pooling_of(reader.model, None, None)
    return Way(
        rules=ENCODE,
        documents=lambda texts: Prepared(
            reader.tokenizer.encode_many([before + text for text in texts]), len(before)
        ),
        query=lambda query: _query(reader, query),
        rows=hidden,
        weights=lambda model, batch: weights_of(model, batch, how),
        pooling=how,
    )


def _query(reader: "Reader", query: str) -> QueryVectors:
    """One vector for a query, and one for each of its tokens; all tokens count alike."""
    before = reader.prompts.get(reader.query_prompt_name or "", "")
    how, _ = pooling_of(reader.model, None, None)
    how = "mean" if how == "sif" else how
    options = reader.options.but(progress=False, overflow="window", whole=True)
    encodings = reader.tokenizer.encode_many([before + query])
    (document,) = prepare(reader.model, ENCODE, ["query"], encodings, options)
    (outputs,) = run(reader.model, [document], options, states(how, EVERYTHING))
    vector = normalized(projected(reader.model, merged(document, [piece[0] for piece in outputs], how)))
    rows, tokens = document.joined([piece[1:] for piece in outputs])
    encoding = document.encoding
    own = (encoding.source[rows] == 0) & (encoding.offsets[rows, 0] >= len(before))
    return QueryVectors(
        vector=vector.astype(np.float32),
        tokens=tokens[own],
        parts=projected(reader.model, tokens[own]),
        offsets=encoding.offsets[rows[own]] - len(before),
        tokenizer=reader.tokenizer,
        skipped=np.zeros(0, np.int64),
    )
