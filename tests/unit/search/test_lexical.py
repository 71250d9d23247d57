"""Scores by words are those of their definitions, also after changes and when parts are joined."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from longspan.search.compaction import compact
from longspan.search.lexical import Lexical
from longspan.search.store import Store
from longspan.search.verify import verify
from longspan.search.view import View
from longspan.search.words import K1, B, query_stems, stems, words_of
from unit.search.folders import stored


def drawn(draw: random.Random, words: int) -> str:
    """Words as real texts have them: few stand everywhere, most are rare."""
    return " ".join(f"w{min(int(draw.paretovariate(0.6)), 997)}x" for _ in range(words))


def idf(all_of: int, holding: int) -> float:
    return math.log(1 + (all_of - holding + 0.5) / (holding + 0.5))


def counted(texts: Sequence[str]) -> list[Counter[str]]:
    stem_of = stems(word for text in texts for word in words_of(text))
    return [Counter(stem_of[word] for word in words_of(text)) for text in texts]


def plain(documents: dict[str, list[str]], query: str) -> dict[str, dict[str, float]]:
    """BM25 of passages, the same by rarity inside, and what is said of documents, as definitions read."""
    passages = {name: counted(texts) for name, texts in documents.items()}
    every = [count for own in passages.values() for count in own]
    mean = sum(count.total() for count in every) / len(every)
    sizes = {name: sum(count.total() for count in own) for name, own in passages.items()}
    average = sum(sizes.values()) / len(sizes)
    scores: dict[str, dict[str, float]] = {"bm25": {}, "inside": {}, "documents": {}, "best": {}}
    for name, own in passages.items():
        title = counted([name])[0]
        for text, count in zip(documents[name], own, strict=True):
            scores["bm25"][text] = scores["inside"][text] = 0.0
            for term in query_stems(query):
                everywhere = idf(len(every), sum(term in each for each in every))
                here = idf(len(own), sum(term in each for each in own))
                norm = K1 * (1 - B + B * count.total() / mean)
                gain = count[term] * (K1 + 1) / (count[term] + norm)
                scores["bm25"][text] += everywhere * gain
                scores["inside"][text] += min(here, everywhere) * gain
        scores["best"][name] = max(scores["bm25"][text] for text in documents[name])
        scores["documents"][name] = 0.0
        for term in query_stems(query):
            times = {
                other: sum(each[term] for each in passages[other]) + 2 * counted([other])[0][term]
                for other in passages
            }  # the name of a file is its title here, and each counts
            rarity = idf(len(times), sum(map(bool, times.values())))
            slack = 1 - B + B * sizes[name] / average
            scores["documents"][name] += rarity * times[name] / (times[name] + slack)
        assert title
    return scores


def said(store: Store, query: str) -> tuple[View, Lexical]:
    view = View(store)
    return view, view.signals(query, None).said


def check(store: Store, documents: dict[str, list[str]], query: str) -> None:
    view, found = said(store, query)
    expected = plain(documents, query)
    rows = np.flatnonzero(view.owner >= 0)
    texts = {row: text.text for row, text in view.texts(rows[~np.isin(rows, view.slots)]).items()}
    assert sorted(texts.values()) == sorted(expected["bm25"])
    for row, text in texts.items():
        assert found.bm25[row] == pytest.approx(expected["bm25"][text], rel=1e-9)
        assert found.inside[row] == pytest.approx(expected["inside"][text], rel=1e-9)
    for number, entry in enumerate(view.entries):
        assert found.documents[number] == pytest.approx(expected["documents"][entry.title], rel=1e-9)
        assert found.best[number] == pytest.approx(expected["best"][entry.title], rel=1e-9)
    dead = np.setdiff1d(np.arange(len(found.bm25)), [*texts])
    assert not found.bm25[dead].any()


def test_scores_are_those_of_the_definitions_also_after_changes(tmp_path: Path) -> None:
    draw, store = random.Random(1), Store(tmp_path)
    documents = {
        f"n{i}": [f"{drawn(draw, draw.randrange(1, 90))} {i}u{j}" for j in range(11)] for i in range(7)
    }
    queries = [drawn(draw, count) for count in (1, 2, 5, 13)] + ["w1x", "nowhere7", "n2 w3x"]
    for name, own in documents.items():
        stored(store, name, own)
    for gone in (None, "n0", "n5", "n6"):
        if gone is not None:
            del documents[gone]
            with store.db.transaction():
                store.remove([Path("/", gone)])
                assert store.remove_orphans() == 1
            compact(store)
            verify(store)
        for query in queries:
            check(store, documents, query)
    assert store.db.number("generation") > 0


def test_many_parts_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.search.compaction.PARTS", 3)
    store = Store(tmp_path)
    for name in "abcde":
        stored(store, name, [f"river {name}", "stone"])
    before = said(store, "river c")[1]
    assert store.db.number("parts") == 5
    compact(store)
    after = said(store, "river c")[1]
    assert store.db.number("parts") == 1
    assert np.array_equal(before.bm25, after.bm25)
    assert np.array_equal(before.documents, after.documents)
    verify(store)


def test_a_word_of_the_name_of_a_file_speaks_for_its_document_and_no_passage(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for name in ("lease", "letter"):
        stored(store, name, ["who pays", "and when"])
    view, found = said(store, "lease")
    assert view.entries[int(found.documents.argmax())].title == "lease"
    assert not found.bm25.any()
    assert found.missing[[entry.title for entry in view.entries].index("lease")] == 0
    assert found.missing[[entry.title for entry in view.entries].index("letter")] > 0


def test_words_of_a_heading_speak_for_the_passages_below_it(tmp_path: Path) -> None:
    from unit.search.folders import by_words

    index = by_words(tmp_path, {"a.md": "# Termination\n\n" + "Ten days are enough for all of us. " * 30})
    hits = index.search("termination", top=99, mode="bm25")
    assert len(hits) == len(index) > 1
    assert "Termination" not in hits[-1].text
