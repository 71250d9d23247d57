"""Readers inside LangChain, LlamaIndex, Haystack, BERTopic and MTEB, where installed the real ones."""

import asyncio
import importlib
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from integrations import fakes
from longspan.errors import InputError
from longspan.integrations.common import MissingPackageError
from longspan.reader import Reader
from unit.tasks.tiny import CORPUS, LONG, reader

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # before it is imported
PACKAGES = {
    "langchain": "langchain_core",
    "llama_index": "llama_index.core",
    "haystack": "haystack",
    "bertopic": "bertopic",
    "mteb": "mteb",
}
TEXTS = list(CORPUS)


@pytest.fixture(params=["fake", "real"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With stand-ins, then with the libraries themselves."""
    if request.param == "fake":
        fakes.install(monkeypatch)
    return str(request.param)


def adapter(name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of an adapter, imported anew."""
    if kind == "real":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytest.importorskip(PACKAGES[name], reason=f"{PACKAGES[name]} is not installed")
    monkeypatch.delitem(sys.modules, f"longspan.integrations.{name}", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(f"longspan.integrations.{name}")


@pytest.fixture
def found() -> Reader:
    made = reader("bert", "encode")
    return Reader(made.model, made.tokenizer, prompts={"query": "find ", "document": "read "})


@pytest.fixture
def folder(found: Reader, tmp_path: Path) -> Path:
    found.save(tmp_path)
    return tmp_path


def test_langchain(kind: str, found: Reader, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = adapter("langchain", kind, monkeypatch)
    embeddings = module.LongspanEmbeddings(found)
    assert embeddings.embed_query(TEXTS[0]) == found.encode_query(TEXTS[0]).tolist()
    np.testing.assert_array_equal(embeddings.embed_documents(TEXTS), found.encode_document(TEXTS))
    loaded = module.LongspanEmbeddings(folder, overflow="window")
    assert len(loaded.embed_documents([LONG])[0]) == 16
    assert loaded.embed_documents([]) == []
    if kind == "real":
        from langchain_core.vectorstores import InMemoryVectorStore

        store = InMemoryVectorStore.from_texts(TEXTS, embeddings)
        assert len(store.similarity_search("London", k=2)) == 2
        vectors = asyncio.run(embeddings.aembed_documents(TEXTS))
        np.testing.assert_array_equal(vectors, found.encode_document(TEXTS))


def test_llama_index(kind: str, found: Reader, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = adapter("llama_index", kind, monkeypatch)
    embedding = module.LongspanEmbedding(found)
    assert embedding.get_query_embedding(TEXTS[0]) == found.encode_query(TEXTS[0]).tolist()
    np.testing.assert_array_equal(embedding.get_text_embedding_batch(TEXTS), found.encode_document(TEXTS))
    vector = asyncio.run(embedding._aget_text_embedding(TEXTS[0]))
    np.testing.assert_allclose(vector, found.encode_document(TEXTS[0]), atol=1e-6)
    assert module.LongspanEmbedding(folder).model_name == str(folder)
    assert embedding.class_name() == "LongspanEmbedding"
    assert embedding.reader is found
    if kind == "real":
        from llama_index.core.schema import TextNode

        nodes = embedding([TextNode(text=text) for text in TEXTS])
        np.testing.assert_allclose(
            [node.embedding for node in nodes], found.encode_document(TEXTS), atol=1e-6
        )


def test_haystack(kind: str, found: Reader, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = adapter("haystack", kind, monkeypatch)
    document = module.Document
    asked = module.LongspanTextEmbedder(found).run(TEXTS[0])
    assert asked == {"embedding": found.encode_query(TEXTS[0]).tolist()}
    given = [document(content=text, meta={"title": f"t{i}"}) for i, text in enumerate(TEXTS)]
    embedder = module.LongspanDocumentEmbedder(found, meta_fields_to_embed=["title", "missing"])
    documents = embedder.run(given)["documents"]
    expected = found.encode_document([f"t{i}\n{text}" for i, text in enumerate(TEXTS)])
    np.testing.assert_array_equal([each.embedding for each in documents], expected)
    assert given[0].embedding is None
    assert embedder.run([]) == {"documents": []}
    for name in ("LongspanTextEmbedder", "LongspanDocumentEmbedder"):
        kept = getattr(module, name)(str(folder), {"overflow": "window"})
        again = type(kept).from_dict(kept.to_dict())
        assert (again.model, again.options) == (str(folder), {"overflow": "window"})
        again.warm_up()
    with pytest.raises(InputError, match=r"`model` must be a name or a folder, .* but is 'a Reader'"):
        embedder.to_dict()
    with pytest.raises(InputError, match=r"`documents` must be a list of Documents, but is 'str'"):
        embedder.run("text")
    with pytest.raises(InputError, match=r"`text` must be a text \(str\), but is 'list'"):
        module.LongspanTextEmbedder(found).run(["text"])
    if kind == "real":
        from haystack import Pipeline

        pipeline = Pipeline()
        pipeline.add_component("embedder", module.LongspanTextEmbedder(found))
        assert pipeline.run({"embedder": {"text": TEXTS[0]}}) == {"embedder": asked}


def test_bertopic(kind: str, found: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    module = adapter("bertopic", kind, monkeypatch)
    backend = module.LongspanBackend(found)
    np.testing.assert_array_equal(backend.embed(TEXTS), found.encode(TEXTS))
    if kind == "real":
        from bertopic.backend._utils import select_backend

        assert select_backend(backend, language="english") is backend
        np.testing.assert_array_equal(backend.embed_words(TEXTS), found.encode(TEXTS))


def test_mteb(kind: str, found: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    module = adapter("mteb", kind, monkeypatch)
    encoder = module.LongspanEncoder(found, name="me/model", device="cpu")
    batches = [{"text": TEXTS[:2]}, {"text": TEXTS[2:]}]
    np.testing.assert_array_equal(
        encoder.encode(batches, prompt_type="query", batch_size=8), found.encode_query(TEXTS)
    )
    np.testing.assert_array_equal(encoder.encode(batches), found.encode_document(TEXTS))
    assert encoder.mteb_model_meta.name == "me/model"
    assert encoder.mteb_model_meta.embed_dim == 16
    vectors = found.encode(TEXTS)
    assert encoder.similarity(vectors, vectors).shape == (3, 3)
    assert encoder.similarity_pairwise(vectors, vectors).tolist() == pytest.approx([1, 1, 1])
    if kind == "real":
        from mteb.models import EncoderProtocol

        assert isinstance(encoder, EncoderProtocol)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fakes.remove(monkeypatch)
    command = rf"is not installed\. Install it: pip install 'longspan\[{name.replace('_', '-')}\]'"
    with pytest.raises(MissingPackageError, match=command):
        adapter(name, "absent", monkeypatch)


def test_a_reader_has_its_options_already(kind: str, found: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    module = adapter("langchain", kind, monkeypatch)
    with pytest.raises(InputError, match=r"`options` must be left out where a Reader is given, .*overflow"):
        module.LongspanEmbeddings(found, overflow="window")


def test_every_extra_is_named_in_the_project() -> None:
    project: Any = importlib.import_module("tomllib").loads(
        (Path(__file__).parents[2] / "pyproject.toml").read_text()
    )
    extras = project["project"]["optional-dependencies"]
    assert {name.replace("_", "-") for name in PACKAGES} <= set(extras)
