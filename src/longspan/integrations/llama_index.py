"""LlamaIndex: a Reader as an embedding model."""

import asyncio
from typing import Unpack

from longspan.integrations.common import Model, missing, reader_of
from longspan.pipeline.options import ReadingOptions
from longspan.reader import Reader

try:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import PrivateAttr
except ImportError as error:
    raise missing("llama-index-core", "llama-index") from error


class LongspanEmbedding(BaseEmbedding):
    """Vectors for LlamaIndex's indexes, made by a Reader.

    `model` is a Reader, or what longspan.load() takes, with its options. Nodes get the prompt that the model
    has for documents, questions the one for queries.
    """

    _reader: Reader = PrivateAttr()

    def __init__(
        self, model: Model = "default", *, embed_batch_size: int = 100, **options: Unpack[ReadingOptions]
    ) -> None:
        reader = reader_of(model, **options)
        name = type(reader.model.backbone).__name__ if isinstance(model, Reader) else str(model)
        super().__init__(model_name=name, embed_batch_size=embed_batch_size)
        self._reader = reader

    @classmethod
    def class_name(cls) -> str:
        """What LlamaIndex calls it in its files."""
        return "LongspanEmbedding"

    @property
    def reader(self) -> Reader:
        """What makes the vectors."""
        return self._reader

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._reader.encode_query(query).tolist()
        return vector

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._reader.encode_document(texts).tolist()
        return vectors

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)
