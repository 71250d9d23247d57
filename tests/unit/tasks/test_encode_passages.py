"""Late chunking: passages of a document that was read whole are the means of its token vectors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from longspan.errors import InputError
from longspan.families.stitched.model import StitchedConfig
from longspan.reader import Reader
from longspan.tasks.encode import normalized
from longspan.tasks.registry import build
from unit.tasks.tiny import CORPUS, FAMILIES, LONG, reader, tokenizer

TEXT = CORPUS[0]
every_family = pytest.mark.parametrize("family", FAMILIES)


def by_hand(found: Reader, text: str, spans: list[tuple[int, int]], **options: Any) -> Any:
    """Means of the vectors of the tokens that touch each span."""
    tokens, offsets = found.encode_tokens(text, **options), found.tokenizer.encode(text).offsets
    inside = [(offsets[:, 0] < end) & (offsets[:, 1] > start) for start, end in spans]
    return np.stack([tokens[chosen].mean(axis=0) for chosen in inside])


@every_family
def test_vectors_are_means_of_token_vectors_of_the_whole(family: str) -> None:
    found, spans = reader(family, "encode"), [(0, 9), (10, 29), (29, 30), (31, len(TEXT))]
    passages = found.encode_passages(TEXT, spans)
    np.testing.assert_allclose(passages.vectors, by_hand(found, TEXT, spans), rtol=0, atol=1e-6)
    assert passages.vectors.dtype == np.float32
    assert passages.spans == spans
    assert passages.texts == [TEXT[start:end] for start, end in spans]
    assert (len(passages), passages.truncated, passages.windows) == (4, 0, 1)
    assert passages.n_tokens == len(found.tokenizer.encode(TEXT))
    alone = found.encode(passages.texts[1])
    assert np.abs(passages.vectors[1] - alone).max() > 1e-3  # the rest of the document is seen


@every_family
def test_a_document_longer_than_the_model_is_read_in_windows(family: str) -> None:
    found, spans = reader(family, "encode"), [(0, 40), (200, 260), (len(LONG) - 30, len(LONG))]
    passages = found.encode_passages(LONG, spans)
    expected = by_hand(found, LONG, spans, overflow="window")
    np.testing.assert_allclose(passages.vectors, expected, rtol=0, atol=1e-6)
    assert passages.windows > 1
    with pytest.raises(InputError, match=r"`document` must be at most 64 tokens long"):
        found.encode_passages(LONG, spans, overflow="error")
    with pytest.raises(InputError, match=r"`spans\[1\]` must be a place with tokens .* It was cut off"):
        found.encode_passages(LONG, spans, overflow="truncate")


@every_family
def test_without_spans_the_passages_are_ours_and_hold_every_word(family: str, tmp_path: Path) -> None:
    found, text = reader(family, "encode", positions=64), "\n\n".join([LONG] * 2)
    passages = found.encode_passages(text)
    assert len(passages) > 2
    assert passages.spans == sorted(passages.spans)
    assert "".join("".join(passages.texts).split()) == "".join(text.split())
    (tmp_path / "text.txt").write_text(text)
    same = found.encode_passages(tmp_path / "text.txt")
    assert same.spans == passages.spans
    np.testing.assert_array_equal(same.vectors, passages.vectors)


def test_order_prompt_length_and_normalization_are_as_asked() -> None:
    made = build(reader("bert", "encode").model.config, "encode", normalize=True).eval()
    found = Reader(made, tokenizer("bert"), prompts={"passage": "the river "})
    spans = [(10, 30), (0, 9)]
    plain = found.encode_passages(TEXT, spans, normalize=False, prompt="")
    np.testing.assert_allclose(plain.vectors, by_hand(found, TEXT, spans, prompt=""), rtol=0, atol=1e-6)
    unit = found.encode_passages(TEXT, spans, prompt="")
    np.testing.assert_allclose(unit.vectors, normalized(plain.vectors), rtol=0, atol=1e-6)
    short = found.encode_passages(TEXT, spans, prompt="", truncate_dim=5, normalize=True)
    np.testing.assert_allclose(short.vectors, normalized(plain.vectors[:, :5]), rtol=0, atol=1e-6)
    prompted = found.encode_passages(TEXT, spans)
    before = len("the river ")
    moved = [(start + before, end + before) for start, end in spans]
    expected = normalized(by_hand(found, "the river " + TEXT, moved, prompt=""))
    np.testing.assert_allclose(prompted.vectors, expected, rtol=0, atol=1e-6)
    assert found.encode_passages(TEXT, []).vectors.shape == (0, 16)


def test_a_model_that_weighs_its_words_weighs_them_in_passages() -> None:
    sizes: dict[str, Any] = {"width": 24, "layers": 2, "heads": 2, "feed_forward": 40, "positions": 64}
    config = StitchedConfig(**sizes, block=16, vocab_size=420, sif_weights=True)
    model = build(config, "encode", pooling="sif").eval()
    found = Reader(model, tokenizer("bert"))
    weights = torch.linspace(0.1, 3, 420)
    model.head.get_parameter("sif.weight").data = weights[:, None]
    passages = found.encode_passages("the river flows", [(0, 15)])
    tokens, ids = found.encode_tokens("the river flows"), tokenizer("bert").encode("the river flows").ids
    expected = np.average(tokens[1:-1], axis=0, weights=weights.numpy()[ids[1:-1]])
    np.testing.assert_allclose(passages.vectors[0], expected, rtol=0, atol=1e-5)
    plain = tokens[1:-1].mean(axis=0)
    assert np.abs(expected - plain).max() > 1e-3


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([(3, 3)], r"`spans\[0\]` must be a pair \(start, end\) with something between, but is \(3, 3\)"),
        ([(0, 2), (5, 4)], r"`spans\[1\]` must be a pair .* but is \(5, 4\)"),
        ([(0, 999)], r"`spans\[0\]` must be at most 62, but is 999"),
        ([(-1, 4)], r"`spans\[0\]` must be at least 0, but is -1"),
        ([(0, 1.5)], r"`spans\[0\]` must be a whole number, but is 1\.5"),
        (
            [(5, 9), (0, 6)],
            r"`spans\[0\]` must be apart from the others, .* It overlaps spans\[1\]",
        ),
        ([(3, 4)], r"`spans\[0\]` must be a place with tokens that were read.*Leave out white space"),
        ([5], r"`spans\[0\]` must be a pair \(start, end\) of characters, but is 5"),
        (["ab"], r"`spans\[0\]` must be a pair \(start, end\) of characters, but is 'ab'"),
    ],
)
def test_spans_that_cannot_be_are_an_error(spans: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reader("bert", "encode").encode_passages(TEXT, spans)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("  ", r"`document` must be a text with something in it"),
        (None, r"`document` must be a text, a pathlib\.Path or a list of them, but is None"),
        ([TEXT], r"`document` must be one text or pathlib\.Path, but is 'a list of 1'"),
    ],
)
def test_what_is_no_document_is_an_error(document: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reader("bert", "encode").encode_passages(document)
