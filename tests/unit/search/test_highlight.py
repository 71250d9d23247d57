"""Highlights: what is marked is what the word index matches."""

import numpy as np
import pytest

from longspan.search.highlight import SNIPPET, Highlighter
from longspan.search.words import bm25, postings, query_stems, unpack

TEXTS = [
    "The cities were running low on supplies; a cityscape, a runner and a supplier stood by.",
    "His policies: generalization, happiness, relational databases and hopeful adoption.",
    "The Javanese use Java™, not Java, on the Nestlé ﬁle server with cafe\u0301s.",
    "東京 is a city of ties, dies, skies and flying flies; universities agreed to agree.",
]
QUERIES = ["city", "running policies", "supply", "happy relations", "generalize", "java", "Nestle files"]
QUERIES += ["cafés", "京", "tie", "the sky", "fly", "university agreement", "use", "hoped"]


@pytest.mark.parametrize("query", QUERIES)
def test_a_text_is_marked_exactly_if_the_word_index_matches_it(query: str) -> None:
    packed, lengths = postings(TEXTS)
    terms = [unpack([(0, packed[stem])]) for stem in query_stems(query) if stem in packed]
    matching = set(np.flatnonzero(bm25(terms, lengths, len(TEXTS))).tolist())
    highlighter = Highlighter(query, TEXTS)
    assert {i for i, text in enumerate(TEXTS) if any(hot for _, hot in highlighter.parts(text))} == matching


def test_forms_of_a_word_are_marked_whole() -> None:
    text = "The ﬁles of the cafe\u0301s’ policies, East-Policy™ and policy."
    parts = Highlighter("policy file café", [text]).parts(text)
    assert "".join(part for part, _ in parts) == text
    assert [part for part, hot in parts if hot] == ["ﬁles", "cafe\u0301s", "policies", "policy"]


def test_a_long_passage_is_shown_where_it_matches() -> None:
    text = "nothing here " * 60 + "the Thames flows" + " and more" * 60
    shown = Highlighter("Where does the Thames flow?", [text]).snippet(text)
    assert "Thames flows" in shown
    assert len(shown) <= SNIPPET + 4
    assert shown.startswith("… ")
    assert shown.endswith(" …")
