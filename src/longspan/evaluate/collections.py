"""Collections for retrieval: long documents, questions, and where their answers stand."""

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any, NamedTuple

from longspan.errors import bad

DEVELOPMENT = 60
"""RFCs that the built-in model was chosen with; the others are reported."""
STACK = (16_000, 64_000)
"""Characters of a stack of passages: about 4,000 to 16,000 tokens."""
_PAGE = re.compile(r"\[Page \d+\]\s*$|^RFC \d+\s{3,}.*\d{4}\s*$")
_ABSTRACT = re.compile(r"\n\s*(?:\d+\.?\s+)?Abstract:?\s*\n(.*?)\n(?=\S)", re.DOTALL)
_NOISE = re.compile(r"\{[a-z]+\}")
Span = tuple[int, int]


class Query(NamedTuple):
    """A question, the document that answers it, and the characters that do so; none: all of it."""

    text: str
    document: int
    spans: tuple[Span, ...] = ()


class Collection(NamedTuple):
    """Documents in one index, and questions to them."""

    name: str
    documents: list[str]
    queries: list[Query]


def rfc(folder: str | Path, part: str = "test") -> Collection:
    """RFCs behind their abstracts, which are the questions; those without one are in the test's index, too.

    part is "test", "development" or "all".
    """
    found, silent = [], []
    for path in _files(folder, "*.txt"):
        lines = path.read_text(errors="replace").replace("\f", "\n").split("\n")
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(line for line in lines if not _PAGE.search(line)))
        abstract = _ABSTRACT.search(text)
        asked = " ".join(abstract[1].split()) if abstract else ""
        if abstract and len(asked) >= 100:
            found.append((asked, text[abstract.end() :]))
        else:
            silent.append(text)
    random.Random(0).shuffle(found)
    chosen = {"test": found[DEVELOPMENT:], "development": found[:DEVELOPMENT], "all": found}
    if part not in chosen:
        raise bad("part", f"one of {', '.join(chosen)}", part)
    queries = [Query(asked, number) for number, (asked, _) in enumerate(chosen[part])]
    others = [] if part == "development" else silent
    return Collection("RFC abstract", [text for _, text in chosen[part]] + others, queries)


def qmsum(folder: str | Path) -> Collection:
    """Meetings, and questions whose answers are turns of them."""
    documents, queries = [], []
    for number, path in enumerate(_files(folder, "*.json")):
        meeting = _json(path.read_text(encoding="utf-8"), path)
        turns = [f"{turn['speaker']}: {turn['content']}\n" for turn in meeting["meeting_transcripts"]]
        turns = [_NOISE.sub("", turn) for turn in turns]
        starts = [0]
        for turn in turns:
            starts.append(starts[-1] + len(turn))
        documents.append("".join(turns))
        for asked in meeting["specific_query_list"]:
            spans = ((int(a), int(b)) for a, b in asked["relevant_text_span"])
            places = tuple((starts[a], starts[min(b + 1, len(turns))]) for a, b in spans if a < len(turns))
            if places:
                queries.append(Query(asked["query"], number, places))
    return Collection("QMSum", documents, queries)


def nq(path: str | Path) -> Collection:
    """Questions of Natural Questions; their passages, one for each, shuffled and stacked."""
    file = Path(path)
    if not file.is_file():
        raise bad("--nq", "a file of questions with their passages", str(path))
    with (
        gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as f
    ):
        entries = [_json(line, file) for line in f if line.strip()]
    source = random.Random(0)
    source.shuffle(entries)
    documents, queries, known = [""], [], dict[str, tuple[int, Span]]()
    target = source.randint(*STACK)
    for entry in entries:
        gold = entry["ctxs"][0]
        passage = f"{gold['title']}\n{gold['text']}"
        if passage not in known:
            if len(documents[-1]) + len(passage) > target:
                documents.append("")
                target = source.randint(*STACK)
            start = len(documents[-1])
            known[passage] = len(documents) - 1, (start, start + len(passage))
            documents[-1] += passage + "\n\n"
        number, span = known[passage]
        queries.append(Query(entry["question"], number, (span,)))
    return Collection("NQ stacks", documents, queries)


def _files(folder: str | Path, pattern: str) -> list[Path]:
    found = sorted(Path(folder).expanduser().glob(pattern))
    if not found:
        raise bad("folder", f"one with {pattern} files", str(folder))
    return found


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise bad(path.name, "JSON", str(error)) from None
