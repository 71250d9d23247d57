"""Dense modules behind the pooling: read, applied and written as sentence-transformers does it."""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import longspan
from longspan.errors import CheckpointError, InputError
from longspan.families.gemma3.model import Gemma3Config
from longspan.nn.projection import KINDS, Projection
from longspan.reader import Reader
from longspan.search import passages
from longspan.tasks.registry import build
from unit.families.tiny import unsettle
from unit.tasks.tiny import CORPUS, LONG, VOCABULARY, tokenizer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Dense, Normalize

PROMPTS = {"query": "task: search result | query: ", "document": "title: none | text: "}
GEMMA = Gemma3Config(
    vocab_size=VOCABULARY,
    width=24,
    layers=2,
    heads=3,
    head_dim=10,
    feed_forward=40,
    positions=64,
    radius=4,
    layer_types=("sliding_attention", "full_attention"),
    init_std=0.3,
)
BOTH = ((24, 37, False, "identity"), (37, 11, True, "tanh"))


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def made(folder: Path, sizes: Sequence[tuple[Any, ...]] = BOTH, *, normalize: bool = True) -> Reader:
    """A reader with projections, and its folder."""
    torch.manual_seed(0)
    layers = [Projection(a, b, bias=bias, act=act) for a, b, bias, act in sizes]
    model = build(GEMMA, "encode", normalize=normalize, projections=layers)
    unsettle(model)
    reader = Reader(model.eval(), tokenizer("bert"), prompts=PROMPTS)
    reader.save(folder)
    return reader


def theirs(folder: Path) -> Any:
    return SentenceTransformer(str(folder), device="cpu")


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("act", KINDS)
def test_what_longspan_saves_gives_the_same_vectors(tmp_path: Path, act: str, normalize: bool) -> None:
    made(tmp_path, [(24, 37, False, act), (37, 11, True, "identity")], normalize=normalize)
    read, peer = longspan.load(tmp_path), theirs(tmp_path)
    ours = read.encode(list(CORPUS))
    assert ours.shape == (3, 11)
    np.testing.assert_allclose(ours, peer.encode(list(CORPUS)), rtol=0, atol=1e-5)
    for name, verb in (("query", read.encode_query), ("document", read.encode_document)):
        expected = peer.encode(list(CORPUS), prompt_name=name)
        np.testing.assert_allclose(verb(list(CORPUS)), expected, rtol=0, atol=1e-5)
    assert read.encode([]).shape == (0, 11)


def test_what_sentence_transformers_saves_gives_the_same_vectors(tmp_path: Path) -> None:
    made(tmp_path / "plain", (), normalize=False)
    peer = theirs(tmp_path / "plain")
    torch.manual_seed(1)
    peer.append(Dense(24, 40, bias=False, activation_function=torch.nn.Identity()))
    peer.append(Dense(40, 9))
    peer.append(Normalize())
    peer.save(str(tmp_path / "theirs"))
    read = longspan.load(tmp_path / "theirs")
    np.testing.assert_allclose(read.encode(list(CORPUS)), peer.encode(list(CORPUS)), rtol=0, atol=1e-5)
    read.save(tmp_path / "ours")
    found = theirs(tmp_path / "ours").encode(list(CORPUS))
    np.testing.assert_allclose(found, peer.encode(list(CORPUS)), rtol=0, atol=1e-5)


def test_a_model_called_by_hand_projects_too(tmp_path: Path) -> None:
    reader = made(tmp_path)
    (batch,) = reader.prepare([CORPUS[0]])
    with torch.no_grad():
        found = reader.model(batch.ids, batch.layout)[0].numpy()
    np.testing.assert_allclose(found, reader.encode(CORPUS[0]), rtol=0, atol=1e-5)


def test_windows_are_averaged_before_they_are_projected(tmp_path: Path) -> None:
    reader = made(tmp_path, normalize=False)
    plain = Reader(build_plain(reader), reader.tokenizer)
    pooled = torch.from_numpy(plain.encode(LONG, overflow="window"))
    with torch.no_grad():
        expected = reader.model.head.project(pooled[None])[0].numpy()  # type: ignore[operator]
    np.testing.assert_allclose(reader.encode(LONG, overflow="window"), expected, rtol=0, atol=1e-5)


def build_plain(reader: Reader) -> Any:
    """The same backbone without projections."""
    plain = build(GEMMA, "encode").eval()
    plain.backbone.load_state_dict(reader.model.backbone.state_dict())
    return plain


def test_passages_and_queries_of_an_index_are_projected(tmp_path: Path) -> None:
    reader = made(tmp_path)
    (encoded,) = passages.encode(reader, [list(CORPUS[:2])])
    assert encoded.tables.vectors.shape == (3, 11)
    np.testing.assert_allclose(np.linalg.norm(encoded.tables.vectors, axis=1), 1.0, atol=1e-5)
    found = passages.encode_query(reader, "where is Rome")
    assert found.vector.shape == (11,)
    np.testing.assert_allclose(found.vector, reader.encode_query("where is Rome"), rtol=0, atol=1e-5)
    whole = reader.encode_document("".join(CORPUS[:2]), overflow="window")
    np.testing.assert_allclose(encoded.tables.vectors[0], whole, rtol=0, atol=1e-5)


def test_an_index_of_projected_vectors_is_searched_by_tokens_of_another_width(tmp_path: Path) -> None:
    reader = made(tmp_path / "model", normalize=False)
    (tmp_path / "docs").mkdir()
    for number, text in enumerate(CORPUS):
        (tmp_path / "docs" / f"{number}.txt").write_text(text)
    with longspan.Index.open(tmp_path / "index", reader) as index:
        index.add(tmp_path / "docs", progress=False)
        assert (index._store.size_of("width"), index._store.size_of("token_bytes")) == (11, 24 // 8 + 4)
        for mode in ("hybrid", "dense"):
            hits = index.search("where is Rome", mode=mode)
            assert len(hits) == len(CORPUS)
            assert all(np.isfinite(hit.score) for hit in hits)
        index.verify()
    found = passages.encode_query(reader, "where is Rome")
    assert found.tokens.shape[1] == 24
    with torch.no_grad():
        parts = reader.model.head.project(torch.from_numpy(found.tokens)).numpy()  # type: ignore[operator]
    np.testing.assert_allclose(found.parts, parts, rtol=0, atol=1e-5)


def test_another_type_is_that_of_the_projections_too(tmp_path: Path) -> None:
    made(tmp_path)
    read = longspan.load(tmp_path, dtype="bfloat16")
    assert {parameter.dtype for parameter in read.model.parameters()} == {torch.bfloat16}
    exact = longspan.load(tmp_path).encode(CORPUS[0])
    assert np.abs(read.encode(CORPUS[0]) - exact).max() < 0.1


def test_a_saved_folder_forgets_the_projections_that_were_there(tmp_path: Path) -> None:
    made(tmp_path)
    assert (tmp_path / "3_Dense" / "model.safetensors").is_file()
    longspan.load(tmp_path).save(tmp_path)
    assert longspan.load(tmp_path).encode(CORPUS[0]).shape == (11,)
    made(tmp_path, BOTH[:1])
    assert not list(tmp_path.glob("3_Dense/*"))
    assert longspan.load(tmp_path).encode(CORPUS[0]).shape == (37,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"activation_function": "os.system"}, "`2_Dense.activation_function` must be one of torch.nn"),
        ({"activation_function": "torch.nn.modules.activation.Softmax"}, "must be one of torch.nn"),
        ({"activation_function": ["torch.nn.Tanh"]}, "must be one of torch.nn"),
        ({"in_features": 23}, "`2_Dense.in_features` must be 24, as many as it is given, but is 23"),
        ({"out_features": 5}, "'linear.weight' is .*, but its config asks for"),
        ({"out_features": "all"}, "`2_Dense.out_features` must be a whole number"),
        ({"bias": True}, "'linear.bias' is absent, but its config asks for"),
        ({"bias": 1}, "`bias` must be true or false"),
        ({"use_residual": True}, "`2_Dense.use_residual` must be False"),
        ({"module_input_name": "token_embeddings"}, "`2_Dense.module_input_name` must be"),
        ({"speed": 3}, "`2_Dense.speed` must be one of in_features"),
    ],
)
def test_a_module_that_cannot_be_read_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    made(tmp_path)
    path = tmp_path / "2_Dense" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises((InputError, CheckpointError), match=message):
        longspan.load(tmp_path)


def test_weights_that_nobody_asks_for_are_refused(tmp_path: Path) -> None:
    made(tmp_path)
    path = tmp_path / "2_Dense" / "model.safetensors"
    save_file(load_file(path) | {"residual.weight": torch.ones(3)}, path)
    with pytest.raises(
        (InputError, CheckpointError), match=r"it holds 'residual.weight', which its config does not ask for"
    ):
        longspan.load(tmp_path)


@pytest.mark.parametrize("kinds", ["Transformer Dense Pooling", "Transformer Pooling LSTM", "Pooling Dense"])
def test_other_orders_of_modules_are_refused(tmp_path: Path, kinds: str) -> None:
    made(tmp_path)
    listed = [
        {"path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds.split())
    ]
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(
        (InputError, CheckpointError),
        match="not a Transformer, a Pooling, perhaps some Dense and a Normalize",
    ):
        longspan.load(tmp_path)
