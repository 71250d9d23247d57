"""Words: how they are cut, stemmed and counted, and that BM25 is BM25."""

import random
import subprocess
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.search import words as counted
from longspan.search.words import (
    MAX_COUNT,
    MAX_LENGTH,
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
    with pytest.raises(ValueError, match="between 1 and 65536"):
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
