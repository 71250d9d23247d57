"""Models of late interaction give the token vectors and scores of sentence-transformers and plain torch."""

import json
import string
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

import longspan
from helpers import without_native
from longspan import native
from longspan.errors import CheckpointError
from longspan.tasks import late_interaction
from longspan.text.tokenizer import Tokenizer
from parity.rankers import FAMILIES, encoder, words_of
from unit.tasks.tiny import CORPUS

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from sentence_transformers import MultiVectorEncoder

SIZE, LENGTH = 7, 24
QUERIES = ["Who lives near the river?", "the capital, of England"]


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def with_tokens(words: Tokenizer, *tokens: str) -> Tokenizer:
    """The tokenizer with some more tokens."""
    backend = tokenizers.Tokenizer.from_str(words.to_json())
    backend.add_tokens(list(tokens))
    return Tokenizer(backend, words.names)


def projection() -> torch.Tensor:
    return torch.randn(SIZE, 24, generator=torch.Generator().manual_seed(4))


def pylate(folder: Path, family: str = "Bert", **changes: Any) -> Path:
    """A folder as PyLate saves it."""
    folder.mkdir(exist_ok=True)
    encoder(family, "Model").save_pretrained(folder)
    with_tokens(words_of(family), "[Q] ", "[D] ").save(folder, token_types=family == "Bert")
    (folder / "1_Dense").mkdir()
    save_file({"linear.weight": projection()}, folder / "1_Dense" / "model.safetensors")
    identity = "torch.nn.modules.linear.Identity"
    dense = {"in_features": 24, "out_features": SIZE, "bias": False, "activation_function": identity}
    (folder / "1_Dense" / "config.json").write_text(json.dumps(dense))
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    stated: dict[str, Any] = {
        "model_type": "ColBERT",
        "prompts": {},
        "default_prompt_name": None,
        "similarity_fn_name": "MaxSim",
        "query_prefix": "[Q] ",
        "document_prefix": "[D] ",
        "query_length": LENGTH,
        "document_length": 90,
        "attend_to_expansion_tokens": False,
        "do_query_expansion": True,
        "skiplist_words": list(string.punctuation),
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(stated | changes))
    return folder


def close(ours: list[np.ndarray], theirs: list[Any]) -> None:
    assert [len(one) for one in ours] == [len(one) for one in theirs]
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, np.asarray(other), rtol=0, atol=1e-5)


WAYS: dict[str, dict[str, Any]] = {
    "as trained": {},
    "expansion seen": {"attend_to_expansion_tokens": True},
    "no expansion": {"do_query_expansion": False},
    "no skip list": {"skiplist_words": []},
    "other lengths": {"query_length": 40},
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("way", WAYS)
def test_token_vectors_and_scores_are_those_of_sentence_transformers(
    tmp_path: Path, family: str, way: str
) -> None:
    folder = pylate(tmp_path, family, **WAYS[way])
    theirs, ours = MultiVectorEncoder(str(folder), device="cpu"), longspan.load(folder)
    wanted = theirs.encode_query(QUERIES, batch_size=1), theirs.encode_document(list(CORPUS), batch_size=1)
    found = ours.encode_query_tokens(QUERIES), ours.encode_document_tokens(CORPUS)
    close(found[0], list(wanted[0]))
    close(found[1], list(wanted[1]))
    scores = theirs.similarity(*wanted).numpy()
    np.testing.assert_allclose(ours.max_sim(*found), scores, rtol=0, atol=1e-4)
    for one in ours.rank(QUERIES[0], CORPUS):
        assert abs(one["score"] - scores[0, one["corpus_id"]]) < 1e-4


def colbert(folder: Path, **metadata: object) -> Path:
    """A folder as ColBERT's own code saves it."""
    model = encoder("Bert", "Model")
    model.save_pretrained(folder)
    tensors = {f"bert.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file({**tensors, "linear.weight": projection()}, folder / "model.safetensors", {"format": "pt"})
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"architectures": ["HF_ColBERT"]}))
    with_tokens(words_of("Bert"), "[unused0]", "[unused1]").save(folder, token_types=True)
    if metadata:
        (folder / "artifact.metadata").write_text(json.dumps(metadata))
    return folder


STATED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "lengths": {
        "query_maxlen": 20,
        "doc_maxlen": 80,
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
    },
    "expansion": {"attend_to_mask_tokens": True, "mask_punctuation": False},
}


@pytest.mark.parametrize("stated", STATED)
def test_folders_of_colbert_itself_are_read(tmp_path: Path, stated: str) -> None:
    folder = colbert(tmp_path, **STATED[stated])
    theirs, ours = MultiVectorEncoder(str(folder), device="cpu"), longspan.load(folder)
    close(ours.encode_query_tokens(QUERIES), list(theirs.encode_query(QUERIES, batch_size=1)))
    close(ours.encode_document_tokens(CORPUS), list(theirs.encode_document(list(CORPUS), batch_size=1)))


@pytest.mark.parametrize("way", WAYS)
def test_folders_that_sentence_transformers_saves_are_read_and_ours_are_read_again(
    tmp_path: Path, way: str
) -> None:
    theirs = MultiVectorEncoder(str(pylate(tmp_path, **WAYS[way])), device="cpu")
    theirs.save_pretrained(str(tmp_path / "theirs"))
    queries = list(theirs.encode_query(QUERIES, batch_size=1))
    documents = list(theirs.encode_document(list(CORPUS), batch_size=1))
    longspan.load(tmp_path / "theirs").save(tmp_path / "ours")
    for name in ("theirs", "ours"):
        ours = longspan.load(tmp_path / name)
        assert ours.task == "late-interaction"
        close(ours.encode_query_tokens(QUERIES), queries)
        close(ours.encode_document_tokens(CORPUS), documents)


def by_hand(model: Any, ids: list[int], seen: int) -> torch.Tensor:
    """Token vectors by transformers and plain torch; keys from `seen` on are masked."""
    mask = torch.tensor([[1] * seen + [0] * (len(ids) - seen)])
    with torch.no_grad():
        states = model(torch.tensor([ids]), attention_mask=mask).last_hidden_state[0]
    return F.normalize(states @ projection().T, dim=-1)


def test_vectors_and_scores_are_those_of_plain_torch(tmp_path: Path) -> None:
    ours, model = longspan.load(pylate(tmp_path)), encoder("Bert", "Model")
    words = ours.tokenizer
    marks = [words.id_of(name) for name in ("[CLS]", "[Q] ", "[D] ", "[SEP]", "[MASK]")]
    cls, q, d, sep, mask = (int(index) for index in marks if index is not None)
    inner = words.encode(QUERIES[0]).ids[1:-1].tolist()
    read = [cls, q, *inner, sep]
    query = by_hand(model, read + [mask] * (LENGTH - len(read)), len(read))
    inner = words.encode(CORPUS[2]).ids[1:-1].tolist()
    read = [cls, d, *inner, sep]
    kept = [words.tokens([index])[0] not in string.punctuation for index in read]
    assert not all(kept)
    document = by_hand(model, read, len(read))[torch.tensor(kept)]
    np.testing.assert_allclose(ours.encode_query_tokens(QUERIES[0]), query, rtol=0, atol=1e-5)
    np.testing.assert_allclose(ours.encode_document_tokens(CORPUS[2]), document, rtol=0, atol=1e-5)
    expected = float((query @ document.T).max(1).values.sum())
    assert abs(ours.predict((QUERIES[0], CORPUS[2])) - expected) < 1e-4


def test_a_document_is_read_whole_and_a_query_too(tmp_path: Path) -> None:
    ours = longspan.load(pylate(tmp_path, document_length=10))
    text = " ".join(CORPUS * 4)
    tokens = ours.tokenizer.encode(text).ids
    punctuation = [ours.tokenizer.id_of(sign) for sign in string.punctuation]
    kept = len(tokens) + 1 - np.isin(tokens, [index for index in punctuation if index is not None]).sum()
    assert ours.encode_document_tokens(text).shape == (kept, SIZE)
    (found,) = ours.rank(QUERIES[0], [text])
    assert found["windows"] > 1
    assert found["truncated"] == 0
    assert found["n_tokens"] == len(tokens) + 1
    query = " ".join(QUERIES * 2)
    assert len(ours.encode_query_tokens(query)) == len(ours.tokenizer.encode(query).ids) + 1 > LENGTH
    with pytest.raises(longspan.InputError, match="`texts` must be at most 96 tokens long"):
        ours.encode_query_tokens(text)


def edited(path: Path, **fields: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


DENSE, OWN = "1_Dense/config.json", "config_sentence_transformers.json"
WRONG: dict[str, tuple[str, dict[str, Any], str]] = {
    "bias": (DENSE, {"bias": True}, "`bias` must be False in 1_Dense, but is True"),
    "activation": (
        "1_Dense/config.json",
        {"activation_function": "torch.nn.Tanh"},
        "`activation_function` must",
    ),
    "residual": (DENSE, {"use_residual": True}, "`use_residual` must be False"),
    "length": (OWN, {"query_length": -3}, "`query_length` must be"),
    "words": (
        "config_sentence_transformers.json",
        {"skiplist_words": "!?"},
        "`skiplist_words` must be a list",
    ),
    "prefix": (OWN, {"query_prefix": 3}, "`query_prefix` must be a text"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_not_computed_is_refused(tmp_path: Path, what: str) -> None:
    file, fields, words = WRONG[what]
    edited(pylate(tmp_path) / file, **fields)
    with pytest.raises(longspan.InputError, match=words):
        longspan.load(tmp_path)


def test_other_modules_and_places_are_refused(tmp_path: Path) -> None:
    path = pylate(tmp_path) / "modules.json"
    modules = json.loads(path.read_text())
    path.write_text(json.dumps([*modules, modules[1]]))
    with pytest.raises(CheckpointError, match="Transformer, Dense, Dense, not a Transformer"):
        longspan.load(tmp_path)
    path.write_text(json.dumps([modules[0], {**modules[1], "path": "../1_Dense"}]))
    with pytest.raises(CheckpointError, match="not one like 1_Dense"):
        longspan.load(tmp_path)


def test_no_other_task_is_taken_and_no_other_model(tmp_path: Path) -> None:
    with pytest.raises(longspan.InputError, match="`task` must be late-interaction for this model"):
        longspan.load(pylate(tmp_path), "encode")
    plain = encoder("Bert", "Model")
    plain.save_pretrained(tmp_path / "plain")
    words_of("Bert").save(tmp_path / "plain", token_types=True)
    with pytest.raises(longspan.InputError, match="`task` must be late-interaction to call"):
        longspan.load(tmp_path / "plain").encode_query_tokens("a")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for number, text in enumerate(CORPUS):
        (tmp_path / "docs" / f"{number}.txt").write_text(text)
    return tmp_path / "docs"


def test_an_index_takes_such_a_model_as_re_ranker(tmp_path: Path, docs: Path) -> None:
    ours = longspan.load(pylate(tmp_path / "model"))
    with longspan.Index.open(tmp_path / "index") as index:
        index.add(docs, vectors=False, progress=False)
        hits = index.search("the river, the company, the words", mode="bm25", rerank=tmp_path / "model")
        asked = [(hits.asked, hit.text) for hit in hits]
        assert len(asked) == len(CORPUS)
        assert [hit.score for hit in hits] == pytest.approx(ours.predict(asked).tolist(), abs=1e-4)


@pytest.mark.parametrize("make", [pylate, colbert])
def test_an_index_is_built_with_such_a_folder_and_ranks_as_the_model_does(
    tmp_path: Path, docs: Path, make: Any
) -> None:
    """Each file is one passage, so only the tokens around it are missing, and the bits of the codes."""
    (tmp_path / "model").mkdir()
    folder = make(tmp_path / "model")
    theirs = MultiVectorEncoder(str(folder), device="cpu")
    with longspan.Index.open(tmp_path / "index", folder, tokens="8bit") as index:
        assert index.add(docs, progress=False).read == len(CORPUS)
        assert index._store.size_of("width") == SIZE
        hits = index.search(QUERIES[0], mode="dense")
        index.verify()
    (query,) = theirs.encode_query(QUERIES[:1], batch_size=1)
    for hit in hits:
        (tokens,) = theirs.encode_document([hit.text], batch_size=1)
        inner = torch.as_tensor(tokens)[2:-1]  # without the first, the prefix and the last
        expected = float((torch.as_tensor(query) @ inner.T).amax(1).mean())
        assert hit.dense == pytest.approx(expected, abs=0.01)
    assert len(hits) == len(CORPUS)


@pytest.mark.parametrize("form", ["theirs", "ours"])
def test_such_a_folder_is_for_no_other_task_whoever_saved_it(tmp_path: Path, form: str) -> None:
    folder = pylate(tmp_path / "theirs")
    if form == "ours":
        longspan.load(folder).save(tmp_path / "ours")
    with pytest.raises(longspan.InputError, match=r"use rank\(\), or search an index"):
        longspan.load(tmp_path / form, "encode")


def test_scores_go_through_the_native_kernel_and_are_the_same_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, pairs = longspan.load(pylate(tmp_path)), [(query, text) for query in QUERIES for text in CORPUS]
    calls: list[int] = []
    kernel = native.max_sim

    def counting(*given: Any, **named: Any) -> None:
        calls.append(len(given[0]))
        kernel(*given, **named)

    monkeypatch.setattr(native, "max_sim", counting)
    found = ours.predict(pairs)
    assert calls == ([LENGTH] * len(pairs) if native.core() else [])
    tokens = ours.encode_query_tokens(QUERIES), ours.encode_document_tokens(CORPUS)
    np.testing.assert_allclose(ours.max_sim(*tokens).reshape(-1), found, rtol=0, atol=1e-5)
    monkeypatch.setattr(late_interaction, "AT_ONCE", 1)  # documents in several groups
    np.testing.assert_allclose(ours.max_sim(*tokens).reshape(-1), found, rtol=0, atol=1e-5)
    without_native(monkeypatch)
    np.testing.assert_allclose(ours.max_sim(*tokens).reshape(-1), found, rtol=0, atol=1e-5)
