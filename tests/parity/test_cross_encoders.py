"""Re-rankers give the scores of the real CrossEncoder of sentence-transformers."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import longspan
from parity.peers import OF_FAMILY
from parity.rankers import FAMILIES, encoder, words_of
from unit.tasks.tiny import CORPUS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from sentence_transformers import CrossEncoder

QUERY = "Who lives near the river?"


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def cross_encoder(folder: Path, family: str, fields: Any = None, *, labels: int = 1) -> Path:
    """A folder as the hub has them: a classifier of transformers and its tokenizer."""
    model = encoder(family, "ForSequenceClassification", num_labels=labels)
    model.save_pretrained(folder)
    words_of(family).save(folder, token_types=family == "Bert")
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | (fields or {})))
    return folder


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("activation", [None, "linear.Identity", "activation.Sigmoid"])
def test_scores_and_order_are_those_of_sentence_transformers(
    tmp_path: Path, family: str, activation: str | None
) -> None:
    stated = {"sentence_transformers": {"activation_fn": f"torch.nn.modules.{activation}", "version": "6"}}
    folder = cross_encoder(tmp_path, family, stated if activation else None)
    theirs, ours = CrossEncoder(str(folder), device="cpu"), longspan.load(folder)
    pairs = [(QUERY, text) for text in CORPUS] + [(CORPUS[0], "rome"), ("", "Anna")]
    expected = theirs.predict(pairs)
    np.testing.assert_allclose(ours.predict(pairs), expected, rtol=0, atol=1e-5)
    assert np.ptp(expected) > 1e-3
    wanted, found = theirs.rank(QUERY, list(CORPUS)), ours.rank(QUERY, CORPUS)
    assert [one["corpus_id"] for one in found] == [one["corpus_id"] for one in wanted]
    for mine, other in zip(found, wanted, strict=True):
        assert abs(mine["score"] - float(other["score"])) < 1e-5


@pytest.mark.parametrize("name", ["linear.Identity", "activation.Sigmoid"])
def test_a_folder_that_sentence_transformers_saves_is_read_and_saved_again(tmp_path: Path, name: str) -> None:
    module = torch.nn.Identity() if name == "linear.Identity" else torch.nn.Sigmoid()
    folder = str(cross_encoder(tmp_path / "plain", "Bert"))
    theirs = CrossEncoder(folder, device="cpu", activation_fn=module)
    theirs.save_pretrained(str(tmp_path / "theirs"))
    assert (tmp_path / "theirs" / "modules.json").is_file()
    expected = theirs.predict([(QUERY, text) for text in CORPUS])
    ours = longspan.load(tmp_path / "theirs")
    ours.save(tmp_path / "ours")
    again = CrossEncoder(str(tmp_path / "ours"), device="cpu")
    for reranker in (ours, longspan.load(tmp_path / "ours"), again):
        scores = reranker.predict([(QUERY, text) for text in CORPUS])
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)


def test_a_prompt_precedes_the_query(tmp_path: Path) -> None:
    prompts = {"prompts": {"question": "the river "}, "default_prompt_name": "question"}
    folder, pair = str(cross_encoder(tmp_path / "plain", "Bert")), (QUERY, CORPUS[1])
    theirs = CrossEncoder(folder, device="cpu", **prompts)
    theirs.save_pretrained(str(tmp_path / "prompted"))
    plain, ours = longspan.load(folder), longspan.load(tmp_path / "prompted")
    expected = float(theirs.predict(pair))
    assert abs(ours.predict(pair) - expected) < 1e-5
    assert abs(plain.predict(pair, prompt="the river ") - expected) < 1e-5
    assert abs(plain.rank(QUERY, [CORPUS[1]], prompt="the river ")[0]["score"] - expected) < 1e-5
    assert abs(plain.predict(pair) - expected) > 1e-4


def test_the_activation_of_earlier_versions_is_read(tmp_path: Path) -> None:
    earlier = {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}
    folder = cross_encoder(tmp_path, "Bert", earlier)
    theirs = CrossEncoder(str(folder), device="cpu")
    expected = theirs.predict((QUERY, CORPUS[1]))
    assert abs(longspan.load(folder).predict((QUERY, CORPUS[1])) - float(expected)) < 1e-5


@pytest.mark.parametrize("family", FAMILIES)
def test_of_two_outputs_the_second_counts(tmp_path: Path, family: str) -> None:
    folder = cross_encoder(tmp_path, family, labels=2)
    logits = CrossEncoder(str(folder), device="cpu").predict([(QUERY, text) for text in CORPUS])
    expected = torch.softmax(torch.as_tensor(np.asarray(logits)), -1)[:, 1]
    scores = longspan.load(folder).predict([(QUERY, text) for text in CORPUS])
    np.testing.assert_allclose(scores, expected.numpy(), rtol=0, atol=1e-5)


def test_a_long_document_counts_as_its_best_window(tmp_path: Path) -> None:
    folder = cross_encoder(tmp_path, "Bert")
    ours, theirs = longspan.load(folder), CrossEncoder(str(folder), device="cpu")
    limit = OF_FAMILY["Bert"]["max_position_embeddings"]
    words = [word for text in CORPUS for word in text.lower().replace(".", " .").split()] * 9
    known = ours.tokenizer
    (found,) = ours.rank(QUERY, [" ".join(words)])
    assert found["windows"] > 1
    assert found["truncated"] == 0
    assert found["n_tokens"] == len(known.encode_many([(QUERY, " ".join(words))])[0])
    query, text = (known.encode_many([part])[0].ids[1:-1].tolist() for part in (QUERY, " ".join(words)))
    room = limit - len(query) - 3
    step, scores = room - room // 8, []
    for start in range(0, max(1, len(text) - room // 8), step):
        start = min(start, len(text) - room)
        pieces = text[start : start + room]
        ids = torch.tensor([[2, *query, 3, *pieces, 3]])
        types = torch.tensor([[0] * (len(query) + 2) + [1] * (len(pieces) + 1)])
        with torch.no_grad():
            scores.append(float(theirs.model(ids, token_type_ids=types).logits.sigmoid()))
    assert len(scores) == found["windows"]
    assert abs(found["score"] - max(scores)) < 1e-5
