"""Late chunking: a document is read whole, and each of its passages is the mean of its tokens' vectors."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch

from longspan.errors import bad, whole
from longspan.families.task_model import TaskModel
from longspan.nn.heads import PoolingHead
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, Reading
from longspan.pipeline.options import ReadingOptions
from longspan.pipeline.run import Pipeline
from longspan.shapes import FloatArray, IntArray, Matrix
from longspan.tasks.encode import ENCODE, normalized, states
from longspan.text.encoding import Encoding
from longspan.text.passages import split

Span = tuple[int, int]


class PassageOptions(ReadingOptions, total=False):
    """How passages are made, beside how their document is read."""

    prompt: str | None
    prompt_name: str | None
    normalize: bool | None
    truncate_dim: int | None


@dataclass(frozen=True, eq=False)
class Passages:
    """The passages of one document, in order, and what was read of it."""

    vectors: Matrix
    "(n, C): one for each passage."
    spans: list[Span]
    "Where each begins and ends in the document, in characters."
    texts: list[str]
    "What stands there."
    n_tokens: int
    truncated: int
    windows: int

    def __len__(self) -> int:
        return len(self.spans)


class How(NamedTuple):
    """How the vector of a passage is made of those of its tokens."""

    pooling: str
    normalize: bool
    dimensions: int | None
    cut_first: bool


def encode_passages(
    pipeline: Pipeline,
    document: object,
    spans: Iterable[Sequence[int]] | None,
    how: How,
    before: str,
    options: Mapping[str, object],
) -> Passages:
    """The passages of a text or file, read with `before` put before it."""
    taken = inputs.documents("document", document)
    if not taken.single:
        raise bad(
            "document", "one text or pathlib.Path", f"a list of {len(taken.items)}", "Ask for each alone."
        )
    (text,) = taken.items
    chosen = None if spans is None else checked(spans, len(text))
    changed = {"overflow": "window", **options}
    encodings = pipeline.tokenizer.encode_many([before + text])
    ((read, outputs),) = pipeline.read(
        ENCODE, taken, states("mean", ("token_embeddings",)), changed, encodings
    )
    rows, vectors = read.joined(outputs)
    own = (read.encoding.source[rows] == 0) & (read.encoding.offsets[rows, 0] >= len(before))
    rows, vectors = rows[own], vectors[own]
    places = read.encoding.offsets[rows] - len(before)
    if chosen is None:
        chosen = [(passage.start, passage.end) for passage in split(text, places)]
    weights = token_weights(pipeline.model, read, rows, how.pooling)
    means = [
        mean(vectors, weights, touched(places, span, number, read.reading))
        for number, span in enumerate(chosen)
    ]
    stacked = np.stack(means) if means else np.zeros((0, vectors.shape[1]), np.float32)
    stacked = stacked[:, : how.dimensions] if how.cut_first else stacked
    made: Matrix = (normalized(stacked) if how.normalize else stacked)[:, : how.dimensions].astype(np.float32)
    return Passages(made, chosen, [text[start:end] for start, end in chosen], *read.reading)


def checked(spans: Iterable[Sequence[int]], size: int) -> list[Span]:
    """Spans of a text of `size` characters that hold something and do not overlap.

    >>> checked([(4, 9), (0, 4)], 9)
    [(4, 9), (0, 4)]
    """
    found: list[Span] = []
    for number, span in enumerate(spans):
        name = f"spans[{number}]"
        if isinstance(span, str) or not isinstance(span, Sequence) or len(span) != 2:
            raise bad(name, "a pair (start, end) of characters", span)
        start, end = (whole(name, place, 0, most=size) for place in span)
        if end <= start:
            raise bad(name, "a pair (start, end) with something between", tuple(span))
        found.append((start, end))
    ordered = sorted((span, number) for number, span in enumerate(found))
    for ((_, end), first), ((start, _), second) in pairwise(ordered):
        if start < end:
            repair = f"It overlaps spans[{first}], {found[first]}; ask for it in another call."
            raise bad(f"spans[{second}]", "apart from the others", found[second], repair)
    return found


def touched(places: IntArray, span: Span, number: int, reading: Reading) -> IntArray:
    """The tokens that lie in a span, or reach into it."""
    first = int(np.searchsorted(places[:, 1], span[0], side="right"))  # tokens stand in order
    inside = np.arange(first, int(np.searchsorted(places[:, 0], span[1])))
    if inside.size == 0:
        why = "It was cut off: use overflow='window'." if reading.truncated else "Leave out white space."
        raise bad(f"spans[{number}]", "a place with tokens that were read", span, why)
    return inside


def token_weights(model: TaskModel, document: Document, rows: IntArray, pooling: str) -> FloatArray:
    """How much each token counts: alike, but for a model that weighs its words."""
    head, encoding = model.head, document.encoding
    weights = head.weights(_ids(model, encoding, rows), pooling) if isinstance(head, PoolingHead) else None
    return np.ones(len(rows), np.float32) if weights is None else weights.detach().float().cpu().numpy()


def mean(vectors: FloatArray, weights: FloatArray, rows: IntArray) -> FloatArray:
    """(n, C), (n,) -> (C,): the mean of some rows by their weights; if all are 0, the plain one."""
    chosen = weights[rows]
    average: FloatArray = np.average(vectors[rows], axis=0, weights=chosen if chosen.any() else None)
    return average


def _ids(model: TaskModel, encoding: Encoding, rows: IntArray) -> torch.Tensor:
    return torch.from_numpy(encoding.ids[rows]).to(next(model.parameters()).device)
