"""Summarise: a text about a whole document."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import torch

from longspan.errors import InputError, bad, no_option, whole
from longspan.generation.names import NAMES, stated, translated
from longspan.generation.options import Writing
from longspan.generation.run import generate
from longspan.generation.search import Text
from longspan.models.task import evaluating
from longspan.models.writer import Writer
from longspan.tasks.documents import Document
from longspan.tasks.inputs import listed
from longspan.tasks.options import Options
from longspan.tasks.run import PATIENCE, batched, on
from longspan.text.stream import TextStream
from longspan.text.tokenizer import Tokenizer

PAPERS = {"beams": 4, "length_penalty": 2.0, "no_repeat": 3, "early_stopping": True}
"""As BART and LED write summaries, where a folder says nothing about it."""
LONGEST = 256
"""Tokens of a summary, where nobody says anything about it."""
STYLE = frozenset({*PAPERS, "longest", "shortest", "sample"})
"""What a folder has to say something of, to be followed in all of it."""
DRAWING = ("temperature", "top_k", "top_p")
READING = frozenset(field.name for field in fields(Options))
WRITING = frozenset(field.name for field in fields(Writing))

Shown = Callable[[str], object]
"""Called with each piece of a text that is being written; the text ends there if it is False."""


def divided(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of reading, and options of writing under our names, from a mixture."""
    reading = {name: value for name, value in given.items() if name in READING}
    writing = {name: value for name, value in given.items() if name not in READING}
    for name in writing:
        if name not in WRITING and name not in NAMES:
            raise no_option(name, sorted(WRITING | READING | {*NAMES, "query", "seed", "stream"}))
    return reading, translated(writing)


def own_writing(config: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, Any]:
    """How a model writes by its config.json and generation_config.json, else as papers have it.

    A folder that says something about its style is followed as transformers follows it, in all but lengths.
    """
    tasks = config.get("task_specific_params")
    usual = tasks.get("summarization") if isinstance(tasks, Mapping) else None
    said: dict[str, Any] = {}
    for part in (config, usual, generation):
        said |= stated(part) if isinstance(part, Mapping) else {}
    return said if said.keys() & STYLE else PAPERS | said


def chosen(asked: Mapping[str, Any], own: Mapping[str, Any], *, positions: int, vocab: int) -> Writing:
    """What was asked for, and else the model's own way, which gives way where the two do not go together.

    >>> own = {"beams": 4, "shortest": 56, "longest": 142}
    >>> chosen({"longest": 20}, own, positions=1024, vocab=9).shortest
    20
    """
    wanted = {"beams": 1, "longest": LONGEST, "shortest": 0, "count": 1, "sample": False} | dict(own)
    try:
        longest, shortest, beams = (whole(name, wanted[name], 0) for name in ("longest", "shortest", "beams"))
        if asked.get("longest") is not None:
            wanted["shortest"] = min(shortest, whole("longest", asked["longest"], 1))
        wanted["longest"] = min(positions, max(longest, whole("shortest", asked.get("shortest", 0), 0)))
        if asked.get("sample"):
            wanted["beams"] = 1
        elif "count" in asked:
            wanted["beams"] = max(beams, whole("count", asked["count"], 1))
        wanted |= asked
        if not wanted["sample"]:
            wanted = {name: value for name, value in wanted.items() if name not in DRAWING or name in asked}
        return Writing().but(**wanted).fitting(positions=positions, vocab=vocab)
    except InputError as error:
        if any(f"`{name}`" in str(error) for name in own if name not in asked):
            raise InputError(f"{error} The model's own settings are {dict(own)}.") from None
        raise


def with_queries(texts: Sequence[str], query: Any) -> list[str]:
    """Documents behind what is asked about them, a blank line between (as in SCROLLS, Shaham et al. 2022)."""
    if query is None:
        return list(texts)
    wanted = f"one text, or one for each of the {len(texts)} documents"
    queries = [query] if isinstance(query, str) else listed("query", query, wanted)
    for one in queries:
        if not isinstance(one, str) or not one.strip():
            raise bad("query", "a text with something in it", one)
    queries = queries * len(texts) if isinstance(query, str) else queries
    if len(queries) != len(texts):
        raise bad("query", wanted, f"{len(queries)} texts")
    return [f"{one}\n\n{text}" for one, text in zip(queries, texts, strict=True)]


def write(
    model: Writer,
    tokenizer: Tokenizer,
    documents: Sequence[Document],
    options: Options,
    writing: Writing,
    *,
    seed: int | None = None,
    shown: Shown | None = None,
) -> list[dict[str, Any]]:
    """For each document {summary_text, n_tokens, truncated}, and `summaries` where several are written.

    What is drawn depends on `seed` and the document alone. The rows of what is written are counted as if they
    were read, so that the budget of tokens bounds them, too.
    """
    if shown is not None and (len(documents) > 1 or writing.count > 1):
        raise bad("stream", "None where several texts are written", "a function", "Ask for one.")
    if seed is not None:
        whole("seed", seed, 0, most=2**63 - 1)
        options = options.but(deterministic=options.deterministic or writing.sample)
    rows = max(writing.beams, writing.count) * (writing.longest or 0)
    batches = batched(model, documents, options, more=rows)
    stream = None if shown is None else _Stream(tokenizer, shown)
    found: dict[int, list[Text]] = {}
    with evaluating(model), _bar(len(documents), options.progress if stream is None else False) as bar:
        for batch in batches:
            bar.tell(f"reading {batch.layout.size:,} tokens")
            part = on(batch, model)
            texts = generate(
                model,
                part.ids,
                part.layout,
                writing,
                generator=None if seed is None else torch.Generator().manual_seed(seed),
                told=None if stream is None else stream.told,
                stop=bar.stepped,
                global_first=False,  # what is global was chosen before
            )
            found.update(zip(batch.index, texts, strict=True))
            bar.done(len(texts))
    if stream is not None:
        stream.end()
    several = writing.count > 1
    return [_result(document, tokenizer, found[i], several) for i, document in enumerate(documents)]


def _result(document: Document, tokenizer: Tokenizer, texts: Sequence[Text], several: bool) -> dict[str, Any]:
    known = tokenizer.vocab_size  # a model may have more rows than its tokenizer has words
    written = [tokenizer.decode([t for t in text.tokens if t < known], special=False) for text in texts]
    reading = document.reading
    found = {"summary_text": written[0], "n_tokens": reading.n_tokens, "truncated": reading.truncated}
    return found | ({"summaries": written} if several else {})


class _Stream:
    """Shows the text of tokens as they come, until it is told to stop."""

    def __init__(self, tokenizer: Tokenizer, shown: Shown) -> None:
        self._text, self._shown, self._known = TextStream(tokenizer), shown, tokenizer.vocab_size
        self._more = True

    def told(self, document: int, token: int) -> bool:
        piece = self._text.add(token) if token < self._known else ""
        self._more = not piece or self._shown(piece) is not False
        return self._more

    def end(self) -> None:
        rest = self._text.end()
        if rest and self._more:
            self._shown(rest)


class _Bar:
    """Counts documents, and says what is being done about those at hand."""

    def __init__(self, made: Any) -> None:
        self._made, self._steps = made, 0

    def tell(self, doing: str) -> None:
        self._made.set_postfix_str(doing, refresh=False)
        self._made.update(0)

    def stepped(self) -> bool:
        """One more token of each text is about to be written; nobody wants that to stop."""
        self._steps += 1
        self.tell(f"writing token {self._steps:,}")
        return False

    def done(self, documents: int) -> None:
        self._steps = 0
        self._made.update(documents)


@contextmanager
def _bar(documents: int, shown: bool | None) -> Iterator[_Bar]:
    """A bar: always, never, or on a terminal when it takes a while."""
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    hide, delay = (False, 0.0) if shown else (None if shown is None else True, PATIENCE)
    look = {"unit": " documents", "leave": False, "miniters": 0}  # 0: steps are shown, not documents alone
    with tqdm(total=documents, disable=hide, delay=delay, **look) as made:
        yield _Bar(made)
