"""Answer: the stretch of a text that answers a question, found in the whole document at once."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longspan.errors import bad, whole
from longspan.layout import Layout
from longspan.models.task import TaskModel
from longspan.shapes import BoolArray, FloatArray
from longspan.tasks.documents import Document
from longspan.tasks.run import by_document, scores
from longspan.tasks.segments import group_logsumexp, mean
from longspan.text.packing import Batch

Span = tuple[int, int]
_NONE = "Give [] for a document without an answer."


def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
    """Each token's scores as start and end (n, 2), of each piece."""
    return by_document(scores(model, batch), batch)


def loss(found: Tensor, layout: Layout, spans: Sequence[Iterable[Span]]) -> Tensor:
    """How wrong the scores (N, 2) are, where each document may have several right spans (first, last token).

    The mean over starts and ends of -log p(any right one), p being a softmax over the tokens of the document
    (Clark and Gardner 2018, section 2.2, which Longformer uses for TriviaQA); with one span it is the usual
    cross entropy. Documents without a span, and tokens beyond the document, add nothing.

    >>> loss(torch.zeros(4, 2), Layout.packed([4]), [[(0, 1), (2, 3)]])
    tensor(0.6931)
    """
    if found.shape != (layout.size, 2):
        raise bad("scores", f"of shape ({layout.size}, 2)", tuple(found.shape))
    right = torch.from_numpy(_right(layout, spans)).to(found.device)
    exists = torch.from_numpy(layout.sites.exists.copy()).to(found.device).unsqueeze(1)
    group = torch.from_numpy(layout.sites.document.astype(np.int64)).to(found.device)
    norm = group_logsumexp(found.masked_fill(~exists, -torch.inf), group, layout.documents)
    hit = group_logsumexp(found.masked_fill(~right, -torch.inf), group, layout.documents)
    starts, ends = ((norm[:, i] - hit[:, i])[hit[:, i].isfinite()] for i in (0, 1))
    return (mean(starts) + mean(ends)) / 2


def _right(layout: Layout, spans: Sequence[Iterable[Span]]) -> BoolArray:
    """(N, 2): which rows are right starts and ends."""
    if len(spans) != layout.documents:
        raise bad("spans", f"one list for each of the {layout.documents} documents", f"{len(spans)} lists")
    pairs = [(document, span) for document, given in enumerate(spans) for span in given]
    place = layout.sites.document.astype(np.int64) << 32 | layout.sites.position
    columns = [
        np.isin(place, [(document << 32) + whole("spans", span[i], 0, _NONE) for document, span in pairs])
        for i in (0, 1)
    ]
    return np.stack(columns, axis=1) & layout.sites.exists[:, None]


def decode(
    context: str,
    document: Document,
    found: Sequence[FloatArray],
    *,
    top_k: int,
    longest: int,
    impossible: bool,
) -> list[dict[str, Any]]:
    """The likeliest stretches of the context first; with `impossible` also "", for no answer.

    score = p(start) * p(end), each a softmax over the context and the first token; the windows of a document
    share one softmax, so that they can be compared.
    """
    columns = [(document.encoding.source[p.rows], document.encoding.offsets[p.rows]) for p in document.pieces]
    # The first token takes part in the softmax, since models answer with it where there is no answer.
    counted = [(source == 1) | (np.arange(source.size) == 0) for source, _ in columns]
    everything = np.concatenate([table[kept] for table, kept in zip(found, counted, strict=True)])
    norm = torch.from_numpy(everything).logsumexp(0).numpy()
    best: dict[Span, float] = {}
    for (source, offsets), table in zip(columns, found, strict=True):
        visible = (source == 1) & (offsets[:, 1] > offsets[:, 0])
        places = offsets[visible]
        for first, last, score in _spans(table[visible] - norm, longest, 8 * top_k):
            span = _trimmed(context, int(places[first, 0]), int(places[last, 1]))
            best[span] = max(score, best.get(span, -np.inf))
    if impossible or not best:
        least = min(float((table[0] - norm).sum()) for table in found)
        best[0, 0] = least if impossible else -np.inf
    ranked = sorted(best.items(), key=lambda item: (-item[1], item[0]))[:top_k]
    return [
        {"score": float(np.exp(score)), "start": start, "end": end, "answer": context[start:end]}
        for (start, end), score in ranked
    ]


def _spans(likely: FloatArray, longest: int, most: int) -> Iterator[tuple[int, int, float]]:
    """The `most` likeliest pairs (first, last) of at most `longest` tokens, in O(n * longest)."""
    if not len(likely):
        return
    longest = min(longest, len(likely))
    ends = np.concatenate([likely[:, 1], np.full(longest - 1, -np.inf, likely.dtype)])
    pairs = likely[:, :1] + np.lib.stride_tricks.sliding_window_view(ends, longest)  # (n, longest)
    flat = pairs.reshape(-1)
    most = min(most, flat.size)
    for index in np.argpartition(flat, flat.size - most)[flat.size - most :]:
        first, length = divmod(int(index), longest)
        if np.isfinite(flat[index]):
            yield first, first + length, float(flat[index])


def _trimmed(context: str, start: int, end: int) -> Span:
    """The stretch without the white space that some tokenizers count to words."""
    text = context[start:end]
    return start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
