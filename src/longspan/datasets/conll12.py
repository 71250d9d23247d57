"""Files of coreference as in CoNLL-2012 (Pradhan et al. 2012), read and written back."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from longspan.datasets.files import lines
from longspan.datasets.records import Place, Record, wrong
from longspan.errors import unreadable
from longspan.formats.atomic import write_text

BEGIN = re.compile(r"#begin document \((.*)\); part (\d+)\s*")
WORD, SPEAKER, LEAST = 3, 9, 11
"""Columns from 0, and how many there are at least; coreference stands in the last one."""
_MARK = re.compile(r"\((\d+)\)|\((\d+)|(\d+)\)")
NOTHING = ("-", "_", "")


class Mention(NamedTuple):
    """Tokens of a document from a first to a last one, counted from 0."""

    first: int
    last: int


@dataclass(frozen=True)
class CorefDocument:
    """A part of a document: the columns of its tokens as the file has them, and its clusters."""

    name: str
    part: str
    sentences: Sequence[Sequence[Sequence[str]]]
    clusters: Sequence[Sequence[Mention]]
    place: Place

    @property
    def tokens(self) -> list[Sequence[str]]:
        """The columns of all tokens."""
        return [token for sentence in self.sentences for token in sentence]

    @property
    def words(self) -> list[str]:
        """All tokens as they are spelled."""
        return [token[WORD] for token in self.tokens]

    @property
    def text(self) -> str:
        """The words: one space between two, a line for each sentence."""
        return "\n".join(" ".join(token[WORD] for token in sentence) for sentence in self.sentences)

    @property
    def starts(self) -> list[int]:
        """Where each word begins in the text."""
        return list(accumulate((len(word) + 1 for word in self.words[:-1]), initial=0))

    def with_clusters(self, clusters: Iterable[Iterable[tuple[int, int]]]) -> "CorefDocument":
        """The same document with clusters of spans of its text; a span means the words that it touches."""
        starts, words = self.starts, self.words
        found = []
        for cluster in clusters:
            mentions = set[Mention]()
            for start, end in cluster:
                held = [i for i, at in enumerate(starts) if at < end and at + len(words[i]) > start]
                if held:
                    mentions.add(Mention(held[0], held[-1]))
            if mentions:
                found.append(sorted(mentions))
        return replace(self, clusters=found)


def read_conll12(path: Path) -> Iterator[CorefDocument]:
    """The documents of a file, part by part."""
    header: tuple[str, str, int] | None = None
    rows: list[list[tuple[int, list[str]]]] = [[]]
    for number, line in lines(path):
        begun = BEGIN.fullmatch(line.rstrip("\r\n"))
        if begun:
            if header:
                break
            header, rows = (begun[1], begun[2], number), [[]]
        elif line.startswith("#end document"):
            if header is None:
                raise unreadable(path, f"line {number} ends a document that has not begun")
            yield _document(path, header, rows)
            header = None
        elif line.startswith("#") and header is None:
            continue
        elif not line.strip():
            rows += [[]] if rows[-1] else []
        else:
            if header is None:
                raise unreadable(path, f"line {number} stands before #begin document")
            rows[-1].append((number, _columns(line, number, path)))
    if header:
        raise unreadable(path, f"the document that begins in line {header[2]} does not end", "Is it whole?")


def _columns(line: str, number: int, path: Path) -> list[str]:
    line = line.rstrip("\r\n")
    columns = line.split("\t") if "\t" in line else line.split()
    if len(columns) < LEAST:
        raise unreadable(path, f"line {number} has {len(columns)} columns, not {LEAST} or more")
    return columns


def _document(
    path: Path, header: tuple[str, str, int], rows: Sequence[Sequence[tuple[int, list[str]]]]
) -> CorefDocument:
    """The document of some rows; every mention that is opened must be closed."""
    open_, clusters = dict[str, list[tuple[int, int]]](), dict[str, list[Mention]]()
    name, part, begin = header
    numbered = [row for sentence in rows for row in sentence]
    for token, (number, columns) in enumerate(numbered):
        for mark in [] if columns[-1] in NOTHING else columns[-1].split("|"):
            match = _MARK.fullmatch(mark)
            place = Place(path, number)
            if match is None:
                raise wrong(place, "coreference", "marks such as (7, 7) and (7), with | between", columns[-1])
            alone, opens, closes = match.groups()
            if opens:
                open_.setdefault(opens, []).append((token, number))
            elif closes and not open_.get(closes):
                raise wrong(place, "coreference", f"marks that close what is open, such as ({closes}", mark)
            else:
                first = open_[closes].pop()[0] if closes else token
                clusters.setdefault(alone or closes, []).append(Mention(first, token))
    left = [number for opened in open_.values() for _, number in opened]
    if left:
        raise wrong(Place(path, min(left)), "coreference", "marks that are closed again", "left open")
    sentences = tuple(tuple(tuple(columns) for _, columns in sentence) for sentence in rows if sentence)
    return CorefDocument(
        name,
        part,
        sentences,
        sorted(sorted(set(mentions)) for mentions in clusters.values()),
        Place(path, begin),
    )


def write_conll12(path: Path, documents: Iterable[CorefDocument]) -> None:
    """Write documents with their clusters, numbered from 0 in each; all of the file or nothing."""
    write_text(path, "".join(line for document in documents for line in _written(document)))


def _written(document: CorefDocument) -> Iterator[str]:
    count = len(document.tokens)
    alone: list[list[str]] = [[] for _ in range(count)]
    opens: list[list[tuple[int, str]]] = [[] for _ in range(count)]
    closes: list[list[tuple[int, str]]] = [[] for _ in range(count)]
    for number, cluster in enumerate(document.clusters):
        for first, last in cluster:
            if first == last:
                alone[first].append(f"({number})")
            else:
                opens[first].append((-last, f"({number}"))
                closes[last].append((-first, f"{number})"))
    yield f"#begin document ({document.name}); part {document.part}\n"
    token = 0
    for sentence in document.sentences:
        for columns in sentence:
            ends = [mark for _, mark in sorted(closes[token])]
            begins = [mark for _, mark in sorted(opens[token])]
            yield "\t".join([*columns[:-1], "|".join([*begins, *alone[token], *ends]) or "-"]) + "\n"
            token += 1
        yield "\n"
    yield "#end document\n"


def coreference(path: Path) -> Iterator[Record]:
    """A record for each part of a document, its clusters and speakers as spans of the text."""
    for document in read_conll12(path):
        starts, words = document.starts, document.words
        speakers = [token[SPEAKER] for token in document.tokens]
        ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
        spoken: list[tuple[int, int, str]] = []
        for start, end, speaker in zip(starts, ends, speakers, strict=True):
            if spoken and spoken[-1][2] == speaker:
                spoken[-1] = (spoken[-1][0], end, speaker)
            else:
                spoken.append((start, end, speaker))
        clusters = [[(starts[first], ends[last]) for first, last in one] for one in document.clusters]
        values = {
            "id": f"{document.name}, part {document.part}",
            "text": document.text,
            "clusters": clusters,
            "speakers": [one for one in spoken if one[2] not in NOTHING],
        }
        yield Record(values, document.place)
