"""Late chunking: passages of a document that was read whole."""

import numpy as np
import pytest

from longspan.search.passages import encode
from longspan.text.passages import MOST, split
from unit.search.folders import text, tiny
from unit.tasks.tiny import FAMILIES, reader, tokenizer


@pytest.mark.parametrize("sentences", [0, 1, 2, 7, 30, 131])
def test_passages_cover_every_token_once_and_lie_in_the_text(sentences: int) -> None:
    whole = text(1, sentences)
    found = tokenizer("longformer").encode(whole)
    offsets = found.offsets[found.source == 0]
    passages = split(whole, offsets)
    assert [p.first for p in passages] == [0, *(p.behind for p in passages[:-1])]
    assert passages[-1].behind == len(offsets)
    for p in passages:
        assert p.behind - p.first <= MOST
        assert p.behind - p.first >= MOST * 2 // 5 or len(passages) == 1
        assert (p.start, p.end) == (offsets[p.first, 0], offsets[p.behind - 1, 1])


def test_passages_end_where_sentences_end() -> None:
    whole = text(2, 60)
    found = tokenizer("bert").encode(whole)
    passages = split(whole, found.offsets[found.source == 0])
    assert len(passages) > 3
    assert all(whole[p.start : p.end].endswith(".") for p in passages)


def test_a_word_without_end_is_cut_all_the_same() -> None:
    offsets = np.stack([np.arange(1000), np.arange(1, 1001)], axis=1)
    assert max(p.behind - p.first for p in split("a" * 1000, offsets)) <= MOST


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("positions", [64, 512])
def test_a_passage_is_the_mean_of_its_tokens(family: str, positions: int) -> None:
    made = reader(family, "encode", positions=positions, overflow="window")
    texts = [text(1), "", "Rome", text(2, 7)]
    for given, found in zip(texts, encode(made, texts), strict=True):
        tokens = made.encode_tokens(given)
        source = made.tokenizer.encode(given).source
        assert found.vectors.shape == (1 + len(found.passages), 16)
        unit = made.encode(given, normalize=True)
        np.testing.assert_allclose(found.vectors[0], unit, atol=1e-5)
        for passage, vector in zip(found.passages, found.vectors[1:], strict=True):
            mean = tokens[source == 0][passage.first : passage.behind].mean(axis=0)
            np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
        assert found.reading.truncated == 0


def test_prompts_for_documents_shift_no_offsets() -> None:
    made = tiny()
    made.prompts = {"document": "read this: "}
    (found,) = encode(made, [text(3)])
    assert text(3)[: found.passages[0].end].startswith("Document 3.")
    assert text(3)[found.passages[0].start :].startswith("Document 3.")
    assert text(3)[: found.passages[-1].end].rstrip() == text(3).rstrip()


def test_progress_counts_every_token_that_is_read() -> None:
    counts: list[int] = []
    found = encode(tiny(), [text(1), text(2)], advance=counts.append)
    assert sum(counts) >= sum(one.reading.n_tokens for one in found)
