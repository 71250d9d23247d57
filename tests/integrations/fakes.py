"""The little that the adapters use of other libraries, for machines that do not have them."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest


class Embeddings(ABC):
    """LangChain's."""

    @abstractmethod
    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...
    @abstractmethod
    def embed_query(self, text: str) -> list[float]: ...


class BaseEmbedding:
    """LlamaIndex's, without pydantic."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._get_query_embedding(query)  # type: ignore[attr-defined]
        return vector

    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._get_text_embeddings(texts)  # type: ignore[attr-defined]
        return vectors


class BaseEmbedder:
    """BERTopic's."""


@dataclass
class Document:
    """Haystack's."""

    content: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    embedding: list[float] | None = None


class Component:
    """Haystack's decorator."""

    def __call__(self, kind: type) -> type:
        return kind

    def output_types(self, **kinds: Any) -> Callable[[Any], Any]:
        return lambda function: function


class ModelMeta:
    """MTEB's."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    @classmethod
    def create_empty(cls, overwrites: dict[str, Any]) -> "ModelMeta":
        return cls(**overwrites)


def to_dict(made: Any, **fields: Any) -> dict[str, Any]:
    return {"init_parameters": fields}


def from_dict(kind: Any, data: dict[str, Any]) -> Any:
    return kind(**data["init_parameters"])


MODULES: dict[str, dict[str, Any]] = {
    "langchain_core": {},
    "langchain_core.embeddings": {"Embeddings": Embeddings},
    "llama_index": {},
    "llama_index.core": {},
    "llama_index.core.base": {},
    "llama_index.core.base.embeddings": {},
    "llama_index.core.base.embeddings.base": {"BaseEmbedding": BaseEmbedding},
    "llama_index.core.bridge": {},
    "llama_index.core.bridge.pydantic": {"PrivateAttr": lambda: None},
    "haystack": {
        "Document": Document,
        "component": Component(),
        "default_to_dict": to_dict,
        "default_from_dict": from_dict,
    },
    "bertopic": {},
    "bertopic.backend": {"BaseEmbedder": BaseEmbedder},
    "mteb": {},
    "mteb.models": {"ModelMeta": ModelMeta},
}


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for all of them."""
    for name, contents in MODULES.items():
        module = ModuleType(name)
        module.__dict__.update(contents, __path__=[])
        monkeypatch.setitem(sys.modules, name, module)


def remove(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if none of them were installed."""
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, None)
