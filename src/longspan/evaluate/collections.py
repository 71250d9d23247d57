"""Collections for retrieval: long documents, questions, and where the answers are."""

import gzip
import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from longspan.errors import bad

DEVELOPMENT = 60
"""RFCs for choosing the built-in model; figures are reported on the others."""
STACK = (16_000, 64_000)
"""Characters of a stack of passages: about 4,000 to 16,000 tokens."""
_PAGE = re.compile(r"\[Page \d+\]\s*$|^RFC \d+\s{3,}.*\d{4}\s*$")
_ABSTRACT = re.compile(r"\n\s*(?:\d+\.?\s+)?Abstract:?\s*\n(.*?)\n(?=\S)", re.DOTALL)
_NOISE = re.compile(r"\{[a-z]+\}")
Span = tuple[int, int]
T = TypeVar("T")


class Query(NamedTuple):
    """A question, the document that answers it, and where in it; no spans: the whole document."""

    text: str
    document: int
    spans: tuple[Span, ...] = ()


class Collection(NamedTuple):
    """Documents for one index, and questions about them."""

    name: str
    documents: list[str]
    queries: list[Query]

    def limited(self, count: int | None) -> "Collection":
        """The same documents with the first `count` questions, or all."""
        return self._replace(queries=self.queries[:count])


def rfc(folder: str | Path, part: str = "test") -> Collection:
    """RFCs without their abstracts, which are the questions; RFCs that have none are distractors.

    part is "test", "development" (without distractors) or "all".
    """
    answered, silent = [], []
    for path in _files(folder, "*.txt", "--rfc"):
        lines = path.read_text(errors="replace").replace("\f", "\n").split("\n")
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(line for line in lines if not _PAGE.search(line)))
        abstract = _ABSTRACT.search(text)
        question = " ".join(abstract[1].split()) if abstract else ""
        if abstract and len(question) >= 100:
            answered.append((question, text[abstract.end() :]))
        else:
            silent.append(text)
    random.Random(0).shuffle(answered)
    parts = {"test": answered[DEVELOPMENT:], "development": answered[:DEVELOPMENT], "all": answered}
    if part not in parts:
        raise bad("part", f"one of {', '.join(parts)}", part)
    queries = [Query(question, number) for number, (question, _) in enumerate(parts[part])]
    if not queries:
        least = f"a folder with more than {DEVELOPMENT if part == 'test' else 0} RFCs that have an abstract"
        why = f"The first {DEVELOPMENT} chose the built-in model." if part == "test" else ""
        raise bad("--rfc", least, f"{folder}, where {len(answered)} have one", why)
    distractors = [] if part == "development" else silent
    return Collection("RFC abstract", [text for _, text in parts[part]] + distractors, queries)


def qmsum(folder: str | Path) -> Collection:
    """Meetings, and questions that some of their turns answer."""
    read = meetings(folder, "--qmsum", _turns)
    queries = [Query(text, number, spans) for number, (_, asked) in enumerate(read) for text, spans in asked]
    return Collection("QMSum", [document for document, _ in read], queries)


def _turns(meeting: dict[str, Any]) -> tuple[str, list[tuple[str, tuple[Span, ...]]]]:
    """A meeting's text, and its questions with the spans that answer them."""
    turns = [f"{turn['speaker']}: {turn['content']}\n" for turn in meeting["meeting_transcripts"]]
    turns = [_NOISE.sub("", turn) for turn in turns]
    starts = [0]
    for turn in turns:
        starts.append(starts[-1] + len(turn))
    asked = []
    for question in meeting["specific_query_list"]:
        ranges = ((int(a), int(b)) for a, b in question["relevant_text_span"])
        spans = tuple((starts[a], starts[min(b + 1, len(turns))]) for a, b in ranges if a < len(turns))
        if spans:
            asked.append((str(question["query"]), spans))
    return "".join(turns), asked


def meetings(folder: str | Path, option: str, parse: Callable[[dict[str, Any]], T]) -> list[T]:
    """What `parse` makes of each meeting in a folder of QMSum, which was given by `option`."""
    parsed = []
    for path in _files(folder, "*.json", option):
        with _shaped(path, "a meeting of QMSum"):
            parsed.append(parse(json.loads(path.read_text(encoding="utf-8"))))
    return parsed


def nq(path: str | Path) -> Collection:
    """Questions of Natural Questions; the passages that answer them are shuffled and stacked to documents."""
    file = Path(path)
    if not file.is_file():
        raise bad("--nq", "a file of questions with their passages", str(path))
    with _shaped(file, "lines of Natural Questions with gold passages"):
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        entries = [json.loads(line) for line in data.decode("utf-8").split("\n") if line.strip()]
        for entry in entries:
            _ = entry["question"] + entry["ctxs"][0]["title"] + entry["ctxs"][0]["text"]
    if not entries:
        raise bad("--nq", "a file of questions with their passages", f"{path}, which is empty")
    rng = random.Random(0)
    rng.shuffle(entries)
    documents, queries, known = [""], [], dict[str, tuple[int, Span]]()
    target = rng.randint(*STACK)
    for entry in entries:
        gold = entry["ctxs"][0]
        passage = f"{gold['title']}\n{gold['text']}"
        if passage not in known:
            if len(documents[-1]) + len(passage) > target:
                documents.append("")
                target = rng.randint(*STACK)
            start = len(documents[-1])
            known[passage] = len(documents) - 1, (start, start + len(passage))
            documents[-1] += passage + "\n\n"
        number, span = known[passage]
        queries.append(Query(entry["question"], number, (span,)))
    return Collection("NQ stacks", documents, queries)


def _files(folder: str | Path, pattern: str, option: str) -> list[Path]:
    files = sorted(Path(folder).expanduser().glob(pattern))
    if not files:
        raise bad(option, f"a folder with {pattern} files", str(folder))
    return files


@contextmanager
def _shaped(path: Path, what: str) -> Iterator[None]:
    """Refuse a file that is not what it should be."""
    try:
        yield
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, EOFError, gzip.BadGzipFile) as error:
        raise bad(path.name, what, f"{type(error).__name__}: {error}") from None
