"""Peers rank as they would for anybody: full-text search, vectors of chunks, both by rank fusion."""

from pathlib import Path

import numpy as np

from longspan.evaluate.peers import PEERS, FullText, Vectors, by_peers, chunks_of_characters, chunks_of_words
from longspan.evaluate.questions import Question, Questions
from unit.search.folders import text
from unit.tasks.tiny import reader

TEXTS = ["the river runs, the rivers meet", "a bridge over the river", "the sky"]
WHOLE = [(number, 0, len(text)) for number, text in enumerate(TEXTS)]


def test_full_text_search_stems_words_and_ranks_by_bm25() -> None:
    table = FullText(TEXTS, WHOLE)
    assert table.best("Where does the river run?") == [0, 1]  # stop words alone would match the sky
    assert table.best('what "bridge" OR -sky*') == [2, 1]  # no operator works; the shorter text is first
    assert table.best("of the") == [2, 0, 1]  # stop words count if there are no others
    assert table.best("?!") == []


def test_chunks_are_cut_at_white_space() -> None:
    assert chunks_of_words(["a b  c\nd e"], 2) == [(0, 0, 3), (0, 5, 8), (0, 9, 10)]
    assert chunks_of_characters(["aaa bb c  dddddd e", ""], 6) == [
        (0, 0, 6),
        (0, 7, 8),
        (0, 10, 16),
        (0, 17, 18),
    ]


def test_vectors_are_ranked_by_cosine_and_read_back_while_the_chunks_are_the_same(tmp_path: Path) -> None:
    short, texts = reader("bert", "encode", positions=512), [text(number, 3) for number in range(4)]
    places = [(number, 0, len(own)) for number, own in enumerate(texts)]
    kept = tmp_path / "chunks.npz"
    vectors = Vectors(short, texts, places, kept)
    question = np.asarray(short.encode_query(texts[2], normalize=True))
    expected = np.argsort(-(np.asarray(short.encode(texts, normalize=True)) @ question))
    assert vectors.best(texts[2]) == expected.tolist()
    with np.load(kept) as stored:
        np.savez(kept, mark=stored["mark"], vectors=stored["vectors"][::-1])
    assert Vectors(short, texts, places, kept).best(texts[2]) == [3 - number for number in expected]
    assert Vectors(short, texts, places[:3], kept).best(texts[2])[0] == 2  # other chunks are encoded
    kept.write_bytes(b"damaged")
    assert Vectors(short, texts, places, kept).best(texts[2]) == expected.tolist()


def test_every_peer_has_a_row_by_the_same_measure() -> None:
    texts = [text(number, 20) for number in range(3)]
    asked = Question("1", texts[1][30:90], "", 1, (" ".join(texts[1][40:70].split()),))
    questions = Questions("tiny", [], {}, texts, [asked], [])
    rows = list(by_peers(questions, lambda: reader("bert", "encode", positions=512)))
    assert [row.method for row, _ in rows] == list(PEERS.values())
    assert rows[0][0].figures["first 600"] == 1.0
    assert all(list(row.figures)[-1] == "document first" for row, _ in rows)  # none says "no match"
