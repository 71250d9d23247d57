"""Words of passages: cut, stemmed, counted, and scored by BM25."""

import math
import re
import sqlite3
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from longspan.errors import LongspanError
from longspan.search.results import STOP
from longspan.shapes import FloatArray, IntArray

LONGEST = 64
"""Characters of a word; the rest is cut off."""
MOST = 255
"""What a word is counted up to in a passage."""
K1, B = 1.2, 0.75
"""Of BM25: how soon repetition tires, and how much a long passage is marked down."""
_ALONE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # kana and ideographs, which no space parts
_WORD = re.compile(rf"[{_ALONE}]|[^\W_{_ALONE}]+")
_STEMMER = """
CREATE VIRTUAL TABLE words USING fts5 (word, content = '', tokenize = "porter unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE stems USING fts5vocab (words, instance);
"""


class Postings(NamedTuple):
    """Where a stem stands, and how often there."""

    places: IntArray
    times: IntArray


def words_of(text: str) -> list[str]:
    """The words of a text in small letters; every ideograph is a word.

    >>> words_of("Ｔｈｅ ﬁrst_draft, 東京")
    ['the', 'first', 'draft', '東', '京']
    """
    return [word[:LONGEST] for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold())]


def stems(words: Iterable[str]) -> dict[str, str]:
    """Each word's stem by Porter's rules, without diacritics, as SQLite's full-text search makes it.

    >>> stems(["rivers", "cafés"])
    {'rivers': 'river', 'cafés': 'cafe'}
    """
    known = list(dict.fromkeys(words))
    database = sqlite3.connect(":memory:")
    try:
        database.executescript(_STEMMER)
        database.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(known))
        found = dict(database.execute("SELECT doc, term FROM stems"))
    except sqlite3.OperationalError as error:
        raise LongspanError(
            f"This Python's SQLite cannot stem words, since it has no FTS5: {error}."
        ) from error
    finally:
        database.close()
    return {word: found.get(number, word) for number, word in enumerate(known)}


def postings(texts: Sequence[str]) -> tuple[dict[str, bytes], IntArray]:
    """For each stem, where it stands how often (see `unpacked`), and the length of each text in words."""
    counts = [Counter(words_of(text)) for text in texts]
    stem = stems(word for count in counts for word in count)
    found: dict[str, list[int]] = defaultdict(list)
    for place, count in enumerate(counts):
        sums: dict[str, int] = defaultdict(int)
        for word, times in count.items():
            sums[stem[word]] += times
        for term, times in sums.items():
            found[term].append(place << 8 | min(times, MOST))
    packed = {term: np.array(places, "<u4").tobytes() for term, places in found.items()}
    return packed, np.array([sum(count.values()) for count in counts], np.int64)


def packed(places: IntArray, times: IntArray) -> bytes:
    """Places and counts as `unpacked` reads them."""
    return (places << 8 | times).astype("<u4").tobytes()


def unpacked(parts: Iterable[tuple[int, bytes]]) -> Postings:
    """One stem's postings, from parts that count places from a number of their own.

    >>> found = unpacked([(10, packed(np.array([0, 3]), np.array([1, 2])))])
    >>> found.places.tolist(), found.times.tolist()
    ([10, 13], [1, 2])
    """
    known = list(parts)
    firsts, data = [first for first, _ in known], [data for _, data in known]
    joined = np.frombuffer(b"".join(data), "<u4").astype(np.int64)
    places = np.repeat(np.array(firsts, np.int64), np.array([len(part) // 4 for part in data], np.int64)) + (
        joined >> 8
    )
    return Postings(places, joined & MOST)


def asked_for(query: str) -> list[str]:
    """The stems of a query, without words that stand everywhere unless it has no others.

    >>> asked_for("Who said it of the rivers?"), asked_for("to be")
    (['said', 'river'], ['to', 'be'])
    """
    words = words_of(query)
    stem = stems([word for word in words if word not in STOP] or words)
    return list(dict.fromkeys(stem.values()))


def bm25(found: Iterable[Postings], lengths: IntArray, passages: int) -> FloatArray:
    """The score of every place for some stems; `lengths` is 0 where no living passage stands.

    Sum over stems of idf · t · (K1 + 1) / (t + K1 · (1 - B + B · length / mean)), t its count in the passage,
    idf = log(1 + (P - p + 0.5) / (p + 0.5)), where p of all P passages hold it.
    """
    scores = np.zeros(len(lengths))
    mean = max(1, lengths.sum()) / max(1, passages)
    for places, times in found:
        length = lengths[places]
        living = length > 0
        places, times, length = places[living], times[living], length[living]
        idf = math.log(1 + (passages - len(places) + 0.5) / (len(places) + 0.5))
        scores[places] += idf * times * (K1 + 1) / (times + K1 * (1 - B + B * length / mean))
    return scores
