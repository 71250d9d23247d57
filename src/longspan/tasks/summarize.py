"""Summarize: a text about a whole document."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import count
from typing import Any, NotRequired, TypedDict

import torch
from torch import Tensor

from longspan.datasets.forms import SUMMARIES
from longspan.errors import bad, no_option, whole
from longspan.families.backbone import Backbone
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2Seq
from longspan.families.task_model import TaskModel, evaluating
from longspan.generation.config import GenerationConfig
from longspan.generation.generate import generate
from longspan.generation.padded import generate_padded
from longspan.generation.search import Hypothesis
from longspan.generation.settings import OPTIONS, new_token_lengths
from longspan.layout import Layout, require
from longspan.metrics.rouge import rouge
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from longspan.nn.heads import LMHead
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document, prepare
from longspan.pipeline.labels import Labeling, with_column
from longspan.pipeline.options import Options, ReadingOptions
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, batched, on, say_what_is_cut
from longspan.progress import Progress, progress_bar
from longspan.shapes import IntArray
from longspan.tasks.base import Task
from longspan.tasks.losses import Loss, labels_of
from longspan.tasks.style import combined, own_style
from longspan.text.stream import TextStream
from longspan.text.tokenizer import Tokenizer

READING = frozenset(field.name for field in fields(Options))

OnText = Callable[[str], object]
"""Called with each piece of a text as it is generated; the text ends there if it returns False."""


class GenerationOptions(ReadingOptions, total=False):
    """Options of generation, by transformers' names, beside how documents are read."""

    num_beams: int | None
    max_new_tokens: int | None
    max_length: int | None
    min_new_tokens: int | None
    min_length: int | None
    length_penalty: float | None
    length_penalty_form: str | None
    early_stopping: bool | str | None
    repetition_penalty: float | None
    encoder_repetition_penalty: float | None
    no_repeat_ngram_size: int | None
    encoder_no_repeat_ngram_size: int | None
    bad_words_ids: Sequence[Sequence[int]] | None
    forced_bos_token_id: int | None
    forced_eos_token_id: int | Sequence[int] | None
    exponential_decay_length_penalty: tuple[int, float] | None
    suppress_tokens: Sequence[int] | None
    begin_suppress_tokens: Sequence[int] | None
    renormalize_logits: bool | None
    eos_token_id: int | Sequence[int] | None
    decoder_start_token_id: int | None
    do_sample: bool | None
    temperature: float | None
    top_k: int | None
    top_p: float | None
    min_p: float | None
    typical_p: float | None
    num_return_sequences: int | None


class Summary(TypedDict):
    """A text about a document, and what was read of it; `summaries` where several were asked for."""

    summary_text: str
    n_tokens: int
    truncated: int
    summaries: NotRequired[list[str]]


def build(backbone: Backbone, *, labels: int = 2) -> Seq2SeqLM:
    """A model with a new head."""
    assert isinstance(backbone, Seq2Seq)
    model = Seq2SeqLM(backbone, LMHead(backbone.word_embeddings))
    model.writes = generate_padded
    return model


def divided(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of reading and options of generation, from a mixture."""
    reading = {name: value for name, value in options.items() if name in READING}
    writing = {name: value for name, value in options.items() if name not in READING}
    for name in writing:
        if name not in OPTIONS:
            raise no_option(name, sorted(OPTIONS | READING | {"query", "seed", "stream"}))
    return reading, new_token_lengths(writing)


def with_queries(texts: Sequence[str], query: object) -> list[str]:
    """Documents with the query before them and a blank line between (as in SCROLLS, Shaham et al. 2022)."""
    if query is None:
        return list(texts)
    requirement = f"one text, or one for each of the {len(texts)} documents"
    queries = [query] if isinstance(query, str) else inputs.listed("query", query, requirement)
    for one in queries:
        if not isinstance(one, str) or not one.strip():
            raise bad("query", "a text with something in it", one)
    queries = queries * len(texts) if isinstance(query, str) else queries
    if len(queries) != len(texts):
        raise bad("query", requirement, f"{len(queries)} texts")
    return [f"{one}\n\n{text}" for one, text in zip(queries, texts, strict=True)]


def write(
    model: Seq2SeqLM,
    tokenizer: Tokenizer,
    documents: Sequence[Document],
    options: Options,
    config: GenerationConfig,
    *,
    seed: int | None = None,
    on_text: OnText | None = None,
) -> list[Summary]:
    """For each document {summary_text, n_tokens, truncated}, and `summaries` where several are asked for.

    What is sampled depends on `seed` and the document alone. Generated tokens count as if they were read, so
    that the budget of tokens bounds them, too.
    """
    if on_text is not None and (len(documents) > 1 or config.num_return_sequences > 1):
        raise bad("stream", "None where several texts are written", "a function", "Ask for one.")
    if seed is not None:
        whole("seed", seed, 0, most=2**63 - 1)
        options = options.but(deterministic=options.deterministic or config.do_sample)
    rows = max(config.num_beams, config.num_return_sequences) * (config.max_new_tokens or 0)
    say_what_is_cut(documents)
    batches = batched(model, documents, options, more=rows)
    stream = None if on_text is None else _Stream(tokenizer, on_text)
    generated: dict[int, list[Hypothesis]] = {}
    progress = options.progress if stream is None else False
    with evaluating(model), progress_bar(len(documents), "documents", shown=progress, leave=False) as bar:
        for batch in batches:
            bar.status(f"reading {batch.layout.size:,} tokens")
            part = on(batch, model)
            texts = generate(
                model,
                part.ids,
                part.layout,
                config,
                generator=None if seed is None else torch.Generator().manual_seed(seed),
                on_token=None if stream is None else stream.on_token,
                stop=_step_counter(bar),
            )
            generated.update(zip(batch.index, texts, strict=True))
            bar.update(len(texts))
    if stream is not None:
        stream.end()
    several = config.num_return_sequences > 1
    return [_result(document, tokenizer, generated[i], several) for i, document in enumerate(documents)]


def _result(document: Document, tokenizer: Tokenizer, texts: Sequence[Hypothesis], several: bool) -> Summary:
    known = tokenizer.vocab_size  # a model may have more rows than its tokenizer has words
    written = [tokenizer.decode([t for t in text.tokens if t < known], special=False) for text in texts]
    n_tokens, truncated, _ = document.reading
    summary: Summary = {"summary_text": written[0], "n_tokens": n_tokens, "truncated": truncated}
    if several:
        summary["summaries"] = written
    return summary


class _Stream:
    """Shows the text of tokens as they come, until it is told to stop."""

    def __init__(self, tokenizer: Tokenizer, on_text: OnText) -> None:
        self._text, self._on_text, self._known = TextStream(tokenizer), on_text, tokenizer.vocab_size
        self._more = True

    def on_token(self, document: int, token: int) -> bool:
        piece = self._text.add(token) if token < self._known else ""
        self._more = not piece or self._on_text(piece) is not False
        return self._more

    def end(self) -> None:
        rest = self._text.end()
        if rest and self._more:
            self._on_text(rest)


def _step_counter(bar: Progress) -> Callable[[], bool]:
    """Called before each step of generation: shows its number, and never stops it."""
    steps = count(1)

    def step() -> bool:
        bar.status(f"writing token {next(steps):,}")
        return False

    return step


def targets(given: Labeling) -> list[IntArray]:
    """The tokens of the text that is to be written about each document."""
    texts = [inputs.string(f"labels[{i}]", text) for i, text in enumerate(given.labels)]
    assert isinstance(given.model, Seq2SeqLM)
    most, found = given.model.backbone.config.positions, []
    for i, encoding in enumerate(given.tokenizer.encode_many(texts)):
        if not 0 < len(encoding) <= most:
            raise bad(f"labels[{i}]", f"from 1 to {most} tokens long", len(encoding), "Shorten the text.")
        found.append(encoding.ids)
    return found


def with_texts(batch: Batch, targets: Sequence[IntArray], given: Labeling) -> Batch:
    """Labels (M,) are the tokens of the texts, end to end, and `texts` is their layout."""
    return replace(with_column(batch, targets, given), texts=Layout.packed(map(len, targets)))


def loss_sum(model: TaskModel, batch: Batch, *, label_smoothing: float = 0.0) -> Loss:
    """The sum over the words of the texts of a batch, and how many these are."""
    assert isinstance(model, Seq2SeqLM)
    labels, texts = labels_of(batch, Tensor), require(batch.texts, "batch.texts")
    given = batch.ids, batch.layout, labels, texts
    total = model.loss(*given, label_smoothing=label_smoothing, reduction="sum")
    return Loss(total, float((labels != IGNORE_INDEX).sum()))


def summarize(
    pipeline: Pipeline,
    texts: object,
    query: object,
    style: tuple[Mapping[str, Any], Mapping[str, Any]],
    *,
    stream: OnText | None,
    seed: int | None,
    options: Mapping[str, Any],
) -> list[Summary]:
    """A summary of each document; `style` is what config.json and generation_config.json say of it."""
    model = pipeline.model
    assert isinstance(model, Seq2SeqLM)
    reading, chosen = divided(options)
    settings = pipeline.options.but(**reading)
    sizes = model.backbone.config
    config = combined(chosen, own_style(*style), positions=sizes.positions, vocab=sizes.vocab_size)
    taken = inputs.documents("texts", texts)
    encodings = pipeline.tokenizer.encode_many(with_queries(taken.items, query))
    documents = prepare(model, SUMMARIZE, taken.names, encodings, settings)
    return write(model, pipeline.tokenizer, documents, settings, config, seed=seed, on_text=stream)


SUMMARIZE = Task(
    name="summarize",
    aliases=("summarization", "text2text-generation"),
    architecture="ForConditionalGeneration",
    build=build,
    backbones="decoder",
    inputs=partial(inputs.documents, "texts"),
    loss=Seq2SeqLM.loss,
    loss_sum=loss_sum,
    decode=_result,
    metric=rouge,
    targets=targets,
    form=SUMMARIES,
    attach=with_texts,
    label_tokens=len,
    global_tokens=Seq2SeqLM.global_tokens,
    windows=False,
    disk_name="summarise",
)
