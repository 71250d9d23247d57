"""ETC in a Reader: sentences and paragraphs of a text, and the words of a question, have global tokens."""

from typing import Any

import numpy as np
import pytest
import torch

import longspan
from longspan.errors import InputError
from longspan.families.etc.model import EtcConfig
from longspan.nn.quantized import quantize
from longspan.pipeline.documents import prepare
from longspan.pipeline.options import Options
from longspan.pipeline.packing import pack
from longspan.pipeline.run import structure_tags
from longspan.reader import Reader
from longspan.tasks.registry import TASKS, build
from unit.checkpoints.test_etc import REAL
from unit.tasks.tiny import CORPUS, LONG, VOCABULARY, reader, tokenizer

TEXT = "One two. Three!\n\nFour"
SIZES: dict[str, Any] = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 24, "init_std": 0.3}


def made(task: str, **changes: Any) -> Reader:
    torch.manual_seed(0)
    labels: dict[str, Any] = {"token_types": 4, "radius": 4, "distance": 3, "relative": 10}
    config = EtcConfig(vocab_size=VOCABULARY, **SIZES, **labels, **changes)
    return Reader(build(config, task, labels=3).eval(), tokenizer("etc"))


def tags(found: Reader, given: Any, structure: str | None = None, **options: Any) -> list[dict[str, Any]]:
    """What the model is told of each piece of one input."""
    encodings = found.tokenizer.encode_many([given])
    chosen = Options(**options)
    documents = prepare(found.model, TASKS[found.task], ["text"], encodings, chosen)
    columns = structure_tags(found.model, structure, documents)
    return [{name: column.tolist() for name, column in one.items()} for one in columns or []]


def runs(column: list[int]) -> list[int]:
    """The numbers in their order, each once for a run of equal ones."""
    return [number for i, number in enumerate(column) if i == 0 or column[i - 1] != number]


def test_each_sentence_has_a_global_token_and_special_tokens_have_none() -> None:
    (one,) = tags(made("encode"), TEXT)
    assert list(one) == ["parent"]
    assert runs(one["parent"]) == [-1, 0, 1, 2, -1]


def test_each_paragraph_has_one_before_those_of_its_sentences_and_is_a_segment() -> None:
    (one,) = tags(made("encode", units="paragraphs"), TEXT)
    assert runs(one["paragraph"]) == [-1, 0, 3, -1]
    assert runs(one["parent"]) == [-1, 1, 2, 4, -1]
    assert runs(one["segment"]) == [-1, 0, 1, -1]


def test_each_word_of_a_question_has_one_of_its_own_and_comes_first() -> None:
    found = made("answer")
    encodings = found.tokenizer.encode_many([("who is", TEXT)])
    (document,) = prepare(found.model, TASKS["answer"], ["text"], encodings, Options())
    (one,) = tags(found, ("who is", TEXT))
    parent, asked = np.array(one["parent"]), np.flatnonzero(document.marked)
    assert set(np.flatnonzero(document.encoding.source == 0)) <= set(asked)
    assert parent[asked].tolist() == list(range(len(asked)))
    assert runs([number - len(asked) for number in parent.tolist() if number >= len(asked)]) == [0, 1, 2]
    config = found.model.config
    assert isinstance(config, EtcConfig)
    (batch,) = pack([document.encoding.ids], marked=[asked], tags=[{"parent": parent}])
    assert config.structure(batch.layout).words.tolist() == [3] * len(asked) + [1] * 3


def test_both_parts_of_a_pair_are_counted_through() -> None:
    found = made("classify", units="paragraphs")
    (one,) = tags(found, ("a. b", TEXT))
    # The first token is marked, as always to classify.
    assert one["parent"][0] == 0
    assert runs([number for number in one["parent"][1:] if number >= 0]) == [2, 3, 5, 6, 8]
    assert runs([number for number in one["segment"] if number >= 0]) == [0, 1, 2]


def test_more_sentences_than_global_tokens_are_joined_with_their_neighbours() -> None:
    (one,) = tags(made("encode", most_globals=4), "a. " * 10)
    assert runs(one["parent"]) == [-1, 0, 1, 2, 3, -1]


def test_windows_count_their_own_sentences() -> None:
    cut = tags(made("encode", positions=64, absolute=True), LONG, overflow="window")
    assert len(cut) > 1
    for one in cut:
        seen = sorted({number for number in one["parent"] if number >= 0})
        assert seen == list(range(len(seen)))


def test_structure_changes_what_is_read_and_blocks_are_the_models() -> None:
    found = made("encode")
    by = {how: found.encode(TEXT, structure=how) for how in (None, "sentences", "paragraphs", "blocks")}
    assert np.array_equal(by[None], by["sentences"])
    assert np.abs(by["sentences"] - by["paragraphs"]).max() > 1e-4
    assert np.abs(by["sentences"] - by["blocks"]).max() > 1e-4
    blocks = Reader(found.model, found.tokenizer, structure="blocks")
    assert np.array_equal(blocks.encode(TEXT), by["blocks"])


@pytest.mark.parametrize("units", ["sentences", "paragraphs"])
def test_a_document_is_read_the_same_whatever_stands_beside_it(units: str) -> None:
    found = made("encode", units=units, hard_g2l=True)
    texts = [*CORPUS, "", TEXT, LONG]
    together = found.encode(texts)
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(found.encode(text), vector, atol=2e-6)


def test_without_global_tokens_nothing_is_told() -> None:
    found = made("encode", block=0)
    assert tags(found, TEXT) == []
    assert np.array_equal(found.encode(TEXT), found.encode(TEXT, structure="paragraphs"))
    with pytest.raises(InputError, match="`global_tokens` must be None for a model without global tokens"):
        found.encode(TEXT, global_tokens="first")


def test_other_models_have_no_structure_and_misspelt_ones_are_told() -> None:
    with pytest.raises(InputError, match="`structure` must be None for a model without a stream of global"):
        reader("bert", "encode").encode("a", structure="sentences")
    with pytest.raises(InputError, match="`structure` must be one of sentences, paragraphs, blocks"):
        made("encode").encode("a", structure="sentence")


def test_types_are_told_to_an_etc_that_was_a_bert_only() -> None:
    lifted, other = made("answer", long_type=0), made("answer")
    seen: list[Any] = []
    for found in (lifted, other):
        found.model.backbone.register_forward_pre_hook(lambda module, given: seen.append(given[2]))
        found.answer("who?", TEXT)
    assert seen[0] is not None
    assert seen[1] is None


def test_a_checkpoint_of_tensorflow_with_its_vocabulary_is_a_reader(tmp_path: Any) -> None:
    words = ["[PAD]", "[unused0]", "[CLS]", "[SEP]", "[MASK]", "[UNK]", *"abcdefghijklmnopqrstuvw"]
    for path in (REAL / "none").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "vocab_bert_uncased_english.txt").write_text("\n".join(words) + "\n")
    found = longspan.load(tmp_path)
    assert found.encode(["A b. C d.", "e"]).shape == (2, 8)
    found.save(tmp_path / "ours")
    again = longspan.load(tmp_path / "ours")
    assert np.array_equal(found.encode("A b. C d."), again.encode("A b. C d."))


@pytest.mark.parametrize("changes", [{"sharing": "sides"}, {"sharing": "none"}, {"block": 0}])
def test_in_int8_it_reads_nearly_the_same(changes: dict[str, Any]) -> None:
    found = made("encode", **changes)
    exact = found.encode([TEXT, "a b c"], normalize=True)
    quantize(found.model)
    assert 0.999 < (exact * found.encode([TEXT, "a b c"], normalize=True)).sum(1).min() < 1 - 1e-6
