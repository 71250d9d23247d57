"""The words of texts: split, stemmed, counted, and scored by BM25."""

import math
import re
import sqlite3
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from types import ModuleType
from typing import NamedTuple

import numpy as np

from longspan.errors import LongspanError
from longspan.shapes import FloatArray, IntArray

MAX_LENGTH = 64
"""Characters of a word that count."""
MAX_COUNT = 255
"""The most that a word can count in one passage: counts are bytes."""
K1, B = 1.2, 0.75
"""BM25: how soon repetition saturates, and how strongly length is normalized."""
_STOP_WORDS = """a an and are as at be by can did do does for from had has have how i in is it its of on or
that the their there these they this to was were what when where which who whom whose why will with you
your"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
_ALONE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # kana and ideographs: no spaces separate them
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
_STEMMER = """
CREATE VIRTUAL TABLE words USING fts5 (word, content = '', tokenize = "porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE stems USING fts5vocab (words, instance);
"""


class Postings(NamedTuple):
    """Where a stem occurs, and how often there."""

    rows: IntArray
    counts: IntArray


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; every ideograph is a word.

    >>> words_of("Ｔｈｅ ﬁrst_draft, 東京")
    ['the', 'first', 'draft', '東', '京']
    """
    return [word[:MAX_LENGTH] for word in _WORD.findall(_folded(text))]


def _folded(text: str) -> str:
    """The form in which texts are compared."""
    return unicodedata.normalize("NFKC", text).casefold()


def word_spans(text: str) -> list[tuple[str, int, int]]:
    """The words of a text as (word, start, end): the word is text[start:end], normalized.

    >>> word_spans("Die ﬁx-it Idee")
    [('die', 0, 3), ('fix', 4, 6), ('it', 7, 9), ('idee', 10, 14)]
    """
    # Folding may change the number of characters, but acts on each of these pieces by itself.
    starts = [0, *(i for i, char in enumerate(text) if i and not _combines(char)), len(text)]
    pieces = [_folded(text[a:b]) for a, b in pairwise(starts)]
    piece_of = [number for number, piece in enumerate(pieces) for _ in piece]
    return [
        (word[0][:MAX_LENGTH], starts[piece_of[word.start()]], starts[piece_of[word.end() - 1] + 1])
        for word in _WORD.finditer("".join(pieces))
    ]


def _combines(char: str) -> bool:
    """Whether normalization may merge a character with the one before: an accent, a vowel of Hangul."""
    if char.isascii():
        return False
    first = unicodedata.normalize("NFKD", char)[0]
    return unicodedata.category(first).startswith("M") or "\u1160" <= first <= "\u11ff"


def stems(words: Iterable[str]) -> dict[str, str]:
    """Each word's Porter stem without diacritics, as SQLite's full-text search makes it.

    >>> stems(["rivers", "cafés"])
    {'rivers': 'river', 'cafés': 'cafe'}
    """
    distinct = list(dict.fromkeys(words))
    native = _native()
    if native is None:
        return _portable_stems(distinct)
    stem_of = dict(zip(distinct, native.stems(distinct), strict=True))
    foreign = [word for word, stem in stem_of.items() if stem is None]
    return stem_of | _portable_stems(foreign) if foreign else stem_of


def _portable_stems(words: list[str]) -> dict[str, str]:
    """The same of distinct words by SQLite itself."""
    database = sqlite3.connect(":memory:")
    try:
        database.executescript(_STEMMER)
        database.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(words))
        stem_of = dict(database.execute("SELECT doc, term FROM stems"))
    except sqlite3.OperationalError as error:
        raise LongspanError(
            f"This Python's SQLite cannot stem words, since it has no FTS5: {error}."
        ) from error
    finally:
        database.close()
    return {word: stem_of.get(number, word) for number, word in enumerate(words)}


def query_stems(query: str) -> list[str]:
    """The stems of a query, without stop words unless it has no others.

    >>> query_stems("Who said it of the rivers?"), query_stems("to be")
    (['said', 'river'], ['to', 'be'])
    """
    words = words_of(query)
    stem_of = stems([word for word in words if word not in STOP_WORDS] or words)
    return list(dict.fromkeys(stem_of.values()))


def postings(texts: Sequence[str]) -> tuple[dict[str, bytes], IntArray]:
    """For each stem its postings in the texts (see `unpack`), and the length of each text in words."""
    native = _native()
    if native is None:
        return _portable_postings(texts)
    counts = native.count([_folded(text) for text in texts], MAX_LENGTH)
    words = counts.words
    stem_of = stems(words)
    number: dict[str, int] = {}
    groups = [number.setdefault(stem_of[word], len(number)) for word in words]
    ends, data = counts.merge(np.array(groups, np.int32).tobytes(), len(number))
    cuts = [0, *(4 * np.frombuffer(ends, np.int64)).tolist()]
    packed = {stem: data[start:end] for stem, (start, end) in zip(number, pairwise(cuts), strict=True)}
    return packed, np.frombuffer(counts.lengths, np.int64)


@cache
def _native() -> ModuleType | None:
    """The compiled counter; None where it is not built."""
    try:
        import longspan._postings as _postings
    except ImportError:
        return None
    return _postings


def _portable_postings(texts: Sequence[str]) -> tuple[dict[str, bytes], IntArray]:
    """The same without the compiled counter."""
    counts = [Counter(words_of(text)) for text in texts]
    stem_of = stems(word for count in counts for word in count)
    places: dict[str, list[int]] = defaultdict(list)
    for row, count in enumerate(counts):
        sums: dict[str, int] = defaultdict(int)
        for word, times in count.items():
            sums[stem_of[word]] += times
        for stem, times in sums.items():
            places[stem].append(row << 8 | min(times, MAX_COUNT))
    packed = {stem: np.array(own, "<u4").tobytes() for stem, own in places.items()}
    return packed, np.array([sum(count.values()) for count in counts], np.int64)


def pack(rows: IntArray, counts: IntArray) -> bytes:
    """Postings as `unpack` reads them: a <u4 for each row, with the count in its lowest byte."""
    return (rows << 8 | counts).astype("<u4").tobytes()


def unpack(parts: Iterable[tuple[int, bytes]]) -> Postings:
    """The postings of one stem from their parts, each with the row that it counts from.

    >>> rows, counts = unpack([(10, pack(np.array([0, 3]), np.array([1, 2])))])
    >>> rows.tolist(), counts.tolist()
    ([10, 13], [1, 2])
    """
    pairs = list(parts)
    first = np.array([row for row, _ in pairs], np.int64)
    sizes = np.array([len(data) // 4 for _, data in pairs], np.int64)
    joined = np.frombuffer(b"".join(data for _, data in pairs), "<u4").astype(np.int64)
    return Postings(np.repeat(first, sizes) + (joined >> 8), joined & MAX_COUNT)


def bm25(terms: Iterable[Postings], lengths: IntArray, passages: int) -> FloatArray:
    """The score of every row for some terms; `lengths` is 0 where a row holds no passage any more.

    Sum over terms of idf · t · (K1 + 1) / (t + K1 · (1 - B + B · length / mean)), t its count in the passage,
    idf = log(1 + (P - p + 0.5) / (p + 0.5)), where p of all P passages hold it.
    """
    scores = np.zeros(len(lengths))
    mean = max(1, lengths.sum()) / max(1, passages)
    for rows, counts in terms:
        length = lengths[rows]
        alive = length > 0
        rows, counts, length = rows[alive], counts[alive], length[alive]
        idf = math.log(1 + (passages - len(rows) + 0.5) / (len(rows) + 0.5))
        scores[rows] += idf * counts * (K1 + 1) / (counts + K1 * (1 - B + B * length / mean))
    return scores
