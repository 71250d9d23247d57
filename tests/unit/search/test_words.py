"""Words: how they are cut, stemmed and counted, and that BM25 is BM25."""

import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.search import words as counted
from longspan.search.records import File, Row
from longspan.search.store import Store
from longspan.search.view import View
from longspan.search.words import (
    K1,
    MAX_COUNT,
    MAX_LENGTH,
    B,
    postings,
    query_stems,
    stems,
    unpack,
    word_spans,
    words_of,
)

ODD = "aé e\u0301\u0327ﬁ½™ İß①ｶﾞ東\u1100\u1161\u11a8각_-.\u00ad"
"""Characters that normalization joins, splits, or makes words of."""
SHARED = "ab é東_\0\ud800\u0300Я\U00010400"
"""Few enough that words repeat, of every size in memory, with those that cannot be encoded."""
_SUFFIXES = """ational tional enci anci izer logi bli alli entli eli ousli ization ation ator alism
iveness fulness ousness aliti iviti biliti icate ative alize iciti ical ful ness al ance ence er ic able ible
ant ement ment ent ion ou ism ate iti ous ive ize sses ies ss s eed ed ing at bl iz y e ll tt"""
SUFFIXES = _SUFFIXES.split()
compiled = counted._native()
built = pytest.mark.skipif(compiled is None, reason="the counter of words is not compiled")


def drawn(draw: random.Random, words: int) -> str:
    """Words as real texts have them: few stand everywhere, most are rare."""
    return " ".join(f"w{min(int(draw.paretovariate(0.6)), 997)}x" for _ in range(words))


def plain_bm25(texts: Sequence[str], query: str) -> list[float]:
    """BM25 as its definition reads."""
    stem = stems(word for text in (*texts, query) for word in words_of(text))
    counts = [Counter(stem[word] for word in words_of(text)) for text in texts]
    lengths = [len(words_of(text)) for text in texts]
    mean = sum(lengths) / len(texts)
    scores = [0.0] * len(texts)
    for term in query_stems(query):
        holding = sum(term in count for count in counts)
        idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        for i, count in enumerate(counts):
            norm = K1 * (1 - B + B * lengths[i] / mean)
            scores[i] += idf * count[term] * (K1 + 1) / (count[term] + norm)
    return scores


def stored(store: Store, name: str, texts: Sequence[str]) -> None:
    file = File(path=Path("/", name), size=1, mtime=1, digest=name.encode())
    vectors = np.eye(len(texts) + 1, 997, dtype=np.float32)
    with store.db.transaction():
        store.add([(file, vectors, [Row(0, len(text), None, 1, text) for text in texts])])


def found(store: Store, query: str) -> dict[str, float]:
    view = View(store)
    scores = view.by_words(query, 997, view.rows(None))
    return {view.hit(row, score, None, score).text: score for row, score in scores.items()}


def test_scores_are_those_of_the_definition_also_after_changes(tmp_path: Path) -> None:
    draw, store = random.Random(1), Store(tmp_path)
    texts = {f"{i}": [drawn(draw, draw.randrange(1, 150)) for _ in range(31)] for i in range(7)}
    queries = [drawn(draw, count) for count in (1, 2, 5, 13)] + ["w1x", "nowhere"]
    for name, own in texts.items():
        stored(store, name, own)
    texts["3"] = [drawn(draw, 100) for _ in range(29)]
    stored(store, "3", texts["3"])
    for gone in (None, "0", "5", "6"):
        if gone is not None:
            del texts[gone]
            with store.db.transaction():
                store.remove([Path("/", gone)])
            store.compact()
            store.verify()
        passages = [text for own in texts.values() for text in own]
        for query in queries:
            expected = dict(zip(passages, plain_bm25(passages, query), strict=True))
            scores = found(store, query)
            assert set(scores) == {text for text, score in expected.items() if score}
            np.testing.assert_allclose(list(scores.values()), [expected[text] for text in scores], rtol=1e-12)
            assert list(scores.values()) == sorted(scores.values(), reverse=True)
    assert store.db.number("generation") > 0


def test_many_parts_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.search.store.PARTS", 3)
    store = Store(tmp_path)
    for name in "abcde":
        stored(store, name, [f"river {name}", "stone"])
    before = found(store, "river c")
    store.compact()
    assert (store.db.number("parts"), found(store, "river c")) == (1, before)
    store.verify()


def test_forms_of_a_word_are_one_word() -> None:
    assert query_stems("rivers River RIVER'S cafe\u0301 CAFÉS") == ["river", "s", "cafe"]
    assert words_of("東京 tower") == ["東", "京", "tower"]
    assert words_of("a" * 100) == ["a" * MAX_LENGTH]


@built
@given(st.lists(st.text(max_size=40) | st.text(ODD, max_size=20) | st.text(SHARED, max_size=300), max_size=7))
def test_the_compiled_counter_and_the_portable_one_agree(texts: list[str]) -> None:
    packed, lengths = postings(texts)
    expected, expected_lengths = counted._portable_postings(texts)
    assert packed == expected
    assert lengths.tolist() == expected_lengths.tolist() == [len(words_of(text)) for text in texts]


@built
def test_every_character_is_of_the_same_kind_for_both_counters() -> None:
    """Each stands between two letters: it is part of their word, separates them, or is a word itself."""
    texts = [f"x{chr(code)}x" for code in range(sys.maxunicode + 1)]
    expected = Counter(word for text in texts for word in counted._WORD.findall(text))
    assert compiled is not None
    counts = compiled.count(texts, MAX_LENGTH)
    assert set(counts.words) == set(expected)
    assert np.frombuffer(counts.lengths, np.int64).sum() == expected.total()


@built
def test_compiled_stems_are_those_of_sqlite() -> None:
    draw = random.Random(1)
    letters = ["".join(draw.choices("aeiouybtlsxwz1", k=draw.randrange(6))) for _ in range(9973)]
    words = [start + "".join(draw.choices(SUFFIXES, k=draw.randrange(3))) for start in letters]
    words += ["a" * n for n in range(1, 70)] + ["Rivers", "É", "cafés", "a_b", "don't", "東", "x\0y", "-"]
    words = [word for word in dict.fromkeys(words) if word]
    assert stems(words) == counted._portable_stems(words)


@built
def test_the_compiled_counter_refuses_what_it_cannot_count() -> None:
    assert compiled is not None
    with pytest.raises(TypeError):
        compiled.count([b"bytes"], 64)
    with pytest.raises(ValueError, match="at least 1"):
        compiled.count(["a"], 0)
    counts = compiled.count(["one two"], 64)
    for groups in ([0], [0, 2], [0, -1], [0, 1, 0]):
        with pytest.raises(ValueError, match="group"):
            counts.merge(np.array(groups, np.int32).tobytes(), 2)


def test_counting_words_needs_no_torch() -> None:
    program = """
import sys
from longspan.search.words import postings, query_stems
assert set(postings(["Rivers run"])[0]) == {*query_stems("river running")}
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_counts_have_an_end() -> None:
    packed, lengths = postings(["", "go " * 999, "go went"])
    rows, counts = unpack([(5, packed["go"])])
    assert (rows.tolist(), counts.tolist(), lengths.tolist()) == ([6, 7], [MAX_COUNT, 1], [0, 999, 2])


@given(st.text(max_size=40) | st.text(ODD, max_size=20))
def test_every_word_is_found_at_its_place(text: str) -> None:
    spans = word_spans(text)
    assert [word for word, _, _ in spans] == words_of(text)
    for word, start, end in spans:
        assert word in words_of(text[start:end])
    assert all(a[1] <= b[1] and a[2] <= b[2] for a, b in pairwise(spans))
