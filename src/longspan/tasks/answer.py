"""Answer: the stretch of a text that answers a question, found in the whole document at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
import torch
from torch import Tensor

from longspan.datasets.forms import QUESTIONS
from longspan.errors import bad, whole
from longspan.families.backbone import Backbone
from longspan.families.padded import Targets
from longspan.families.seq2seq.lm import Seq2SeqTaskModel
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.metrics.answers import squad
from longspan.nn.heads import DeepSpanHead, SpanHead
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, Found, Piece, ReadingInfo
from longspan.pipeline.inputs import Inputs
from longspan.pipeline.labels import Labeling
from longspan.pipeline.options import ReadingOptions
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, Results, by_document, head_output
from longspan.shapes import BoolArray, FloatArray
from longspan.tasks.base import Task
from longspan.tasks.losses import Loss, group_logsumexp, labels_of, mean

TokenSpan = tuple[int, int]
_NONE = "Give [] for a document without an answer."


class Question(TypedDict):
    """A question about a text."""

    question: str
    context: str


class AnswerOptions(ReadingOptions, total=False):
    """What an answer may be, beside how documents are read."""

    max_answer_len: int
    handle_impossible_answer: bool


class Span(TypedDict):
    """context[start:end] and how likely it is the answer."""

    score: float
    start: int
    end: int
    answer: str


class Answer(Span, ReadingInfo):
    """The likeliest answer, and what was read of the context."""


def build(backbone: Backbone, *, labels: int = 2) -> TaskModel:
    """A model with a new head."""
    c, ending = backbone.config.encoder, "ForQuestionAnswering"
    if backbone.config.has_decoder:
        return Seq2SeqTaskModel(backbone, SpanHead(c.width), ending)
    if own := c.own_head(ending, 2, backbone.word_embeddings):
        return TaskModel(backbone, own, ending)
    if c.deep_span_head:
        deep = DeepSpanHead(c.width, c.feed_forward, act=c.activation, eps=c.norm_eps, dropout=c.dropout)
        return TaskModel(backbone, deep, ending)
    return TaskModel(backbone, SpanHead(c.width), ending)


def questions(question: object, context: object = None) -> Inputs:
    """(question, context) pairs, from two texts, two lists, one of each, or a list of dicts."""
    if context is None:
        return inputs.dicts("question", question, ("question", "context"), _checked)
    if isinstance(question, str) and isinstance(context, str):
        return Inputs([_checked("", question, context)], ["context"], single=True)
    lists = [
        None if isinstance(texts, str) else inputs.listed(name, texts, "a text or a list of texts")
        for name, texts in (("question", question), ("context", context))
    ]
    count = next(len(texts) for texts in lists if texts is not None)
    question_list, contexts = (
        [alone] * count if texts is None else texts
        for texts, alone in zip(lists, (question, context), strict=True)
    )
    if len(question_list) != len(contexts):
        raise bad("context", f"as many as the {len(question_list)} questions", f"{len(contexts)} texts")
    pairs = [_checked(f"[{i}]", *pair) for i, pair in enumerate(zip(question_list, contexts, strict=True))]
    return Inputs(pairs, [f"context[{i}]" for i in range(count)], single=False)


def _checked(place: str, question: object, context: object) -> tuple[str, str]:
    for name, text in (("question", question), ("context", context)):
        if not inputs.string(name + place, text).strip():
            raise bad(name + place, "a text with something in it", text)
    return str(question), str(context)


def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
    """Each token's scores as start and end (n, 2), of each piece."""
    return by_document(head_output(model, batch), batch)


def loss(scores: Tensor, layout: Layout, spans: Sequence[Iterable[TokenSpan]]) -> Tensor:
    """The loss of the scores (N, 2), where a document may have several right spans (first, last token).

    The mean over starts and ends of -log p(any right one), p being a softmax over the tokens of the document
    (Clark and Gardner 2018, section 2.2); with one span it is the usual cross-entropy. Documents without a
    span, and tokens beyond the document, add nothing.

    >>> loss(torch.zeros(4, 2), Layout.packed([4]), [[(0, 1), (2, 3)]])
    tensor(0.6931)
    """
    starts, ends = _by_document(scores, layout, spans)
    return (mean(starts) + mean(ends)) / 2


def loss_sum(model: TaskModel, batch: Batch) -> Loss:
    """The sum over the documents of a batch that have an answer, and how many these are."""
    spans = labels_of(batch, list)
    starts, ends = _by_document(head_output(model, batch), batch.layout, spans)
    return Loss((starts.sum() + ends.sum()) / 2, (starts.numel() + ends.numel()) / 2)


def _by_document(
    scores: Tensor, layout: Layout, spans: Sequence[Iterable[TokenSpan]]
) -> tuple[Tensor, Tensor]:
    """The losses of the starts and of the ends, of the documents that have any."""
    if scores.shape != (layout.size, 2):
        raise bad("scores", f"of shape ({layout.size}, 2)", tuple(scores.shape))
    right = torch.from_numpy(_right(layout, spans)).to(scores.device)
    exists = torch.from_numpy(layout.sites.exists.copy()).to(scores.device).unsqueeze(1)
    group = torch.from_numpy(layout.sites.document.astype(np.int64)).to(scores.device)
    norm = group_logsumexp(scores.masked_fill(~exists, -torch.inf), group, layout.documents)
    hit = group_logsumexp(scores.masked_fill(~right, -torch.inf), group, layout.documents)
    starts, ends = ((norm[:, i] - hit[:, i])[hit[:, i].isfinite()] for i in (0, 1))
    return starts, ends


def padded_loss(given: Targets) -> Tensor:
    """The loss of start_positions and end_positions; those outside of the text add nothing."""
    if given.spans is None:
        raise bad("start_positions", "given with end_positions", "labels", "An answer begins and ends.")
    pairs = zip(*given.spans, strict=True)
    spans = [[] if first is None or last is None else [(first, last)] for first, last in pairs]
    return loss(given.outputs, given.layout, spans)


def _right(layout: Layout, spans: Sequence[Iterable[TokenSpan]]) -> BoolArray:
    """(N, 2): which rows are right starts and ends."""
    if len(spans) != layout.documents:
        raise bad("spans", f"one list for each of the {layout.documents} documents", f"{len(spans)} lists")
    pairs = [(document, span) for document, right in enumerate(spans) for span in right]
    place = layout.sites.document.astype(np.int64) << 32 | layout.sites.position
    columns = [
        np.isin(place, [(document << 32) + whole("spans", span[i], 0, _NONE) for document, span in pairs])
        for i in (0, 1)
    ]
    return np.stack(columns, axis=1) & layout.sites.exists[:, None]


def targets(given: Labeling) -> list[Any]:
    """For each context a list of right answers, (start, end) in characters, [] for none; or as in SQuAD
    {"answer_start": [...], "text": [...]}. A window that does not hold all of an answer does not have it.
    """
    found = []
    for right, document in zip(given.labels, given.documents, strict=True):
        spans = right
        if isinstance(right, Mapping):
            pairs = zip(right["answer_start"], right["text"], strict=True)
            spans = [(start, start + len(text)) for start, text in pairs]
        for piece in document.pieces:
            found.append([span for start, end in spans for span in _token_span(document, piece, start, end)])
    return found


def _token_span(document: Document, piece: Piece, start: int, end: int) -> list[TokenSpan]:
    """The tokens of a piece that an answer stands in, if it stands there as a whole."""
    encoding = document.encoding
    begin, stop = encoding.offsets.T
    tokens = np.flatnonzero((encoding.source == 1) & (begin < end) & (stop > start))
    if not tokens.size:
        raise bad("labels", "answers that stand in the context", (start, end), _NONE)
    held = np.flatnonzero(np.isin(piece.rows, tokens))
    return [(int(held[0]), int(held[-1]))] if held.size == tokens.size else []


def decode(
    context: str,
    document: Document,
    outputs: Sequence[FloatArray],
    *,
    top_k: int,
    longest: int,
    impossible: bool,
) -> list[Span]:
    """The likeliest stretches of the context first; with `impossible` also "", for no answer.

    score = p(start) * p(end), each a softmax over the context and the first token; the windows of a document
    share one softmax, so that they can be compared.
    """
    columns = [(document.encoding.source[p.rows], document.encoding.offsets[p.rows]) for p in document.pieces]
    # The first token takes part in the softmax, since models answer with it where there is no answer.
    counted = [(source == 1) | (np.arange(source.size) == 0) for source, _ in columns]
    everything = np.concatenate([table[kept] for table, kept in zip(outputs, counted, strict=True)])
    norm = torch.from_numpy(everything).logsumexp(0).numpy()
    best: dict[TokenSpan, float] = {}
    for (source, offsets), table in zip(columns, outputs, strict=True):
        visible = (source == 1) & (offsets[:, 1] > offsets[:, 0])
        places = offsets[visible]
        for first, last, score in _spans(table[visible] - norm, longest, 8 * top_k):
            start, end = int(places[first, 0]), int(places[last, 1])
            text = context[start:end]  # without the white space that some tokenizers count to words
            span = start + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
            best[span] = max(score, best.get(span, -np.inf))
    if impossible or not best:
        least = min(float((table[0] - norm).sum()) for table in outputs)
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


def answer(
    pipeline: Pipeline, question: object, context: object, top_k: int, options: AnswerOptions
) -> Results[Answer | Found[Span]]:
    """The answers to each question; a single one where top_k is 1."""
    taken, rest = questions(question, context), dict(options)
    most, longest = whole("top_k", top_k, 1), whole("max_answer_len", rest.pop("max_answer_len", 30), 1)
    impossible = bool(rest.pop("handle_impossible_answer", False))
    read = pipeline.read(ANSWER, taken, step, rest)
    results: list[Answer | Found[Span]] = []
    for (_, text), (document, outputs) in zip(taken.items, read, strict=True):
        best = decode(text, document, outputs, top_k=most, longest=longest, impossible=impossible)
        info = document.reading.info()
        results.append({**best[0], **info} if most == 1 else Found(best, document.reading))
    return Results(results, taken.single)


ANSWER = Task(
    name="answer",
    aliases=("question-answering",),
    architecture="ForQuestionAnswering",
    build=build,
    inputs=questions,
    loss=loss,
    loss_sum=loss_sum,
    decode=decode,
    metric=squad,
    targets=targets,
    form=QUESTIONS,
    padded_loss=padded_loss,
    attach=lambda batch, targets, given: replace(batch, labels=list(targets)),
    global_tokens="question",
    shortened=1,
    drops_labels=True,
)
