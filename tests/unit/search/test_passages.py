"""Late chunking: passages of a document that was read whole."""

import numpy as np
import pytest

from longspan.reader import Reader
from longspan.search import passages
from longspan.search.passages import encode, encode_query
from longspan.search.token_codes import unpack
from longspan.shapes import FloatArray
from longspan.text.passages import tile
from unit.search.folders import text, tiny
from unit.tasks.tiny import FAMILIES, reader


def cut(whole: str) -> list[str]:
    starts = tile(whole)
    return [whole[a:b] for a, b in zip(starts, [*starts[1:], len(whole)][: len(starts)], strict=True)]


def expected(made: Reader, pieces: list[str]) -> FloatArray:
    """The mean of each passage's tokens, weighed by how rare they are among the passages."""
    whole = "".join(pieces)
    encoding = made.tokenizer.encode(whole)
    own = encoding.source == 0
    ids, starts = encoding.ids[own], encoding.offsets[own, 0]
    vectors = made.encode_tokens(whole)[own]
    ends = np.cumsum([len(piece) for piece in pieces])
    passage = np.minimum(np.searchsorted(ends, starts, side="right"), len(pieces) - 1)
    means = []
    for number in range(len(pieces)):
        holding = np.array([len({*passage[ids == each]}) for each in ids[passage == number]])
        weights = np.log(1 + (len(pieces) - holding + 0.5) / (holding + 0.5))
        mean = (vectors[passage == number] * weights[:, None]).sum(0)
        means.append(mean / np.linalg.norm(mean))
    return np.array(means)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("positions", [64, 512])
def test_a_passage_is_the_mean_of_its_tokens_by_their_rarity(family: str, positions: int) -> None:
    made = reader(family, "encode", positions=positions, overflow="window")
    texts = [text(1, 12), "Rome", text(2, 7)]
    for whole, found in zip(texts, encode(made, [cut(whole) for whole in texts]), strict=True):
        np.testing.assert_allclose(found.tables.vectors[0], made.encode(whole, normalize=True), atol=1e-5)
        np.testing.assert_allclose(found.tables.vectors[1:], expected(made, cut(whole)), atol=1e-4)
        assert found.reading.truncated == 0


def test_an_empty_document_has_a_vector_and_no_passages() -> None:
    first, second = encode(tiny(), [[], ["Rome"]], "1bit")
    assert first.tables.vectors.shape == (1, 16)
    assert (len(first.tables.tokens), len(first.tables.token_ends)) == (0, 0)
    assert second.tables.vectors.shape == (2, 16)


def test_prompts_for_documents_shift_no_passage() -> None:
    made = tiny()
    made.prompts = {"document": "read this: "}
    pieces = cut(text(3))
    (found,) = encode(made, [pieces], "8bit")
    encoding = made.tokenizer.encode("read this: " + "".join(pieces))
    starts = encoding.offsets[encoding.source == 0, 0] - len("read this: ")
    ends = np.cumsum([len(piece) for piece in pieces])
    expected = [int(((starts >= 0) & (starts < end)).sum()) for end in ends[:-1]] + [int((starts >= 0).sum())]
    assert found.tables.token_ends.tolist() == expected


@pytest.mark.parametrize(("kind", "least"), [("1bit", 0.6), ("8bit", 0.999)])
def test_tokens_are_kept_in_the_order_of_the_text(kind: str, least: float) -> None:
    made, pieces = tiny(), cut(text(1))
    (found,) = encode(made, [pieces], kind)
    own = made.tokenizer.encode("".join(pieces)).source == 0
    vectors = made.encode_tokens("".join(pieces))[own]
    codes, scales, _ = unpack(found.tables.tokens, 16)
    decoded = codes * scales[:, None]
    cosines = (decoded * vectors).sum(1) / np.linalg.norm(decoded, axis=1) / np.linalg.norm(vectors, axis=1)
    assert cosines.min() > least
    assert found.tables.token_ends[-1] == len(vectors)


def test_a_document_in_segments_has_the_same_passages_and_nearly_the_same_vectors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, pieces = tiny(), cut(text(1, 60))
    (whole,) = encode(made, [pieces], "8bit")
    monkeypatch.setattr(passages, "SEGMENT", 1500)
    monkeypatch.setattr(passages, "STEP", 1500)
    parts, other = encode(made, [pieces, ["Rome"]], "8bit")
    assert parts.tables.vectors.shape == whole.tables.vectors.shape
    assert np.array_equal(parts.tables.token_ends, whole.tables.token_ends)
    cosines = (parts.tables.vectors * whole.tables.vectors).sum(1)
    assert cosines.min() > 0.95
    assert not np.array_equal(parts.tables.vectors, whole.tables.vectors)
    assert parts.reading.n_tokens > whole.reading.n_tokens  # each segment has its own frame
    assert len(other.tables.vectors) == 2


def test_what_is_read_together_changes_nothing() -> None:
    made, documents = tiny(), [cut(text(number, 10 + number)) for number in range(5)]
    together = encode(made, documents, "8bit")
    for pieces, found in zip(documents, together, strict=True):
        (alone,) = encode(made, [pieces], "8bit")
        np.testing.assert_allclose(found.tables.vectors, alone.tables.vectors, atol=1e-6)
        np.testing.assert_array_equal(found.tables.token_ends, alone.tables.token_ends)


def test_progress_counts_every_token_that_is_read() -> None:
    counts: list[int] = []
    found = encode(tiny(), [cut(text(1)), cut(text(2))], advance=counts.append)
    assert sum(counts) >= sum(each.reading.n_tokens for each in found)


def test_a_query_is_one_vector_and_one_for_each_token_in_it() -> None:
    made = tiny()
    made.prompts = {"query": "find: "}
    query = "the old bridge"
    found = encode_query(made, query)
    np.testing.assert_allclose(found.vector, made.encode_query(query, normalize=True), atol=1e-5)
    assert len(found.tokens) == len(found.offsets)
    assert found.offsets[0, 0] == 0
    assert "".join(query[a:b].strip() for a, b in found.offsets) == query.replace(" ", "")
