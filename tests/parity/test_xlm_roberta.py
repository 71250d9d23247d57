"""XLM-R of 8,192 tokens, as bge-m3 has it: sentence-transformers' folder is read, and gives its vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import longspan
from longspan.errors import CheckpointError, InputError
from longspan.layout import Layout
from parity.peers import close, output, pair, peer, words
from unit.tasks.tiny import CORPUS, VOCABULARY, tokenizer

ROWS = 8194
"""Positions and two rows before them that no document uses."""


def folder_of(place: Path, **changes: Any) -> Any:
    """A folder as sentence-transformers writes it: Transformer, Pooling by the first token, Normalize."""
    model = peer("XLMRoberta", "Model", vocab_size=VOCABULARY, max_position_embeddings=ROWS, **changes)
    model.save_pretrained(place)
    tokenizer("longformer").save(place, token_types=False)
    kinds = ("Transformer", "Pooling", "Normalize")
    listed = [
        {
            "idx": number,
            "name": str(number),
            "path": f"{number}_{kind}" if number else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, kind in enumerate(kinds)
    ]
    (place / "modules.json").write_text(json.dumps(listed))
    (place / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": 24, "pooling_mode_cls_token": True}
    (place / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return model


def test_a_document_of_8192_tokens_is_read_as_transformers_reads_it(tmp_path: Path) -> None:
    theirs, ours = pair(tmp_path, "XLMRoberta", "Model", max_position_embeddings=ROWS, num_hidden_layers=1)
    assert ours.longest == 8192
    (ids,) = words(8192)
    with torch.no_grad():
        close(ours.backbone(ids, Layout.packed([8192])), output(theirs(ids[None])))


def test_a_folder_with_pooling_by_the_first_token_gives_its_unit_vectors(tmp_path: Path) -> None:
    theirs = folder_of(tmp_path)
    reader = longspan.load(tmp_path)
    assert reader.task == "encode"
    for text, found in zip(CORPUS, reader.encode(list(CORPUS)), strict=True):
        ids = torch.from_numpy(reader.tokenizer.encode(text).ids.astype(np.int64))[None]
        with torch.no_grad():
            first = theirs(ids).last_hidden_state[0, 0]
        np.testing.assert_allclose(found, (first / first.norm()).numpy(), rtol=0, atol=1e-5)


def test_what_is_saved_gives_the_same_vectors(tmp_path: Path) -> None:
    folder_of(tmp_path / "theirs")
    reader = longspan.load(tmp_path / "theirs")
    reader.save(tmp_path / "ours")
    again = longspan.load(tmp_path / "ours")
    assert np.array_equal(again.encode(list(CORPUS)), reader.encode(list(CORPUS)))
    assert again.model.longest == 8192


def with_heads(place: Path, *, outputs: int = 10) -> tuple[Any, torch.nn.Linear, torch.nn.Linear]:
    """The folder with both heads beside the model, as FlagEmbedding saves them."""
    theirs = folder_of(place)
    torch.manual_seed(3)
    sparse, vectors = torch.nn.Linear(24, 1), torch.nn.Linear(24, outputs)
    torch.save(sparse.state_dict(), place / "sparse_linear.pt")
    torch.save(vectors.state_dict(), place / "colbert_linear.pt")
    return theirs, sparse, vectors


def states(theirs: Any, reader: longspan.Reader, text: str) -> tuple[list[int], torch.Tensor]:
    ids = torch.from_numpy(reader.tokenizer.encode(text).ids.astype(np.int64))
    return ids.tolist(), theirs(ids[None]).last_hidden_state[0]


@torch.no_grad()
def test_words_are_weighed_as_flag_embedding_weighs_them(tmp_path: Path) -> None:
    theirs, sparse, _ = with_heads(tmp_path)
    reader = longspan.load(tmp_path)
    texts = [*CORPUS, "Anna Anna Anna"]
    assert reader.encode_sparse(texts[0]) == pytest.approx(reader.encode_sparse(texts)[0], rel=1e-6)
    alone = longspan.load(tmp_path, deterministic=True)  # bit for bit, as docs/reliability.md promises
    assert alone.encode_sparse(texts[0]) == alone.encode_sparse(texts)[0]
    met = 0
    for text, found in zip(texts, reader.encode_sparse(texts), strict=True):
        ids, x = states(theirs, reader, text)
        expected: dict[int, float] = {}
        for index, weight in zip(ids, torch.relu(sparse(x))[:, 0].tolist(), strict=True):
            if weight > 0 and index > 4:  # below are special tokens
                expected[index] = max(weight, expected.get(index, 0.0))
        assert found.keys() == expected.keys()
        np.testing.assert_allclose([found[index] for index in expected], [*expected.values()], atol=1e-5)
        met += len(expected)
    assert met > 20


@torch.no_grad()
def test_tokens_have_vectors_as_flag_embedding_makes_them(tmp_path: Path) -> None:
    theirs, _, vectors = with_heads(tmp_path)
    reader = longspan.load(tmp_path)
    for text, found in zip(CORPUS, reader.encode_multi_vector(list(CORPUS)), strict=True):
        _, x = states(theirs, reader, text)
        expected = torch.nn.functional.normalize(vectors(x[1:]), dim=-1)
        np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-5)


def test_heads_are_saved_as_they_were(tmp_path: Path) -> None:
    with_heads(tmp_path / "theirs")
    longspan.load(tmp_path / "theirs").save(tmp_path / "ours")
    for name in ("sparse_linear.pt", "colbert_linear.pt"):
        before, after = (torch.load(tmp_path / one / name, weights_only=True) for one in ("theirs", "ours"))
        assert before.keys() == after.keys()
        assert all(torch.equal(before[key], after[key]) for key in before)
    again, first = (longspan.load(tmp_path / one) for one in ("ours", "theirs"))
    assert again.encode_sparse(CORPUS[0]) == first.encode_sparse(CORPUS[0])


def test_windows_of_a_long_text_are_joined(tmp_path: Path) -> None:
    with_heads(tmp_path)
    reader = longspan.load(tmp_path, limit=40, overflow="window")
    text = " ".join(CORPUS)
    tokens = len(reader.tokenizer.encode(text))
    assert tokens > 40
    assert reader.encode_multi_vector(text).shape == (tokens - 1, 10)
    assert {*reader.encode_sparse(text)} <= {*reader.tokenizer.encode(text).ids.tolist()}


def test_a_model_without_such_heads_says_so(tmp_path: Path) -> None:
    folder_of(tmp_path)
    reader = longspan.load(tmp_path)
    with pytest.raises(InputError, match=r"`model` must be one with sparse_linear.pt to call encode_sparse"):
        reader.encode_sparse("a")
    with pytest.raises(InputError, match=r"`model` must be one with colbert_linear.pt to call"):
        reader.encode_multi_vector(["a"])


class Evil:
    """What a pickle must not be allowed to do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("executed",)


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("sparse_linear.pt", {"weight": torch.zeros(2, 24), "bias": torch.zeros(2)}),
        ("sparse_linear.pt", {"weight": torch.zeros(1, 24)}),
        ("colbert_linear.pt", {"weight": torch.zeros(9, 23), "bias": torch.zeros(9)}),
        ("colbert_linear.pt", {"weight": torch.zeros(9, 24), "bias": torch.zeros(())}),
        ("colbert_linear.pt", {"weight": torch.zeros(9, 24).int(), "bias": torch.zeros(9).int()}),
        ("colbert_linear.pt", {"weight": Evil()}),
    ],
    ids=["two weights", "no bias", "another width", "a bias of no rank", "whole numbers", "code"],
)
def test_a_file_that_holds_something_else_is_refused(
    tmp_path: Path, name: str, state: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    folder_of(tmp_path)
    torch.save(state, tmp_path / name)
    with pytest.raises(CheckpointError, match=name):
        longspan.load(tmp_path)
    assert "executed" not in capsys.readouterr().out


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""
