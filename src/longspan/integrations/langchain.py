"""LangChain: a Reader as Embeddings."""

from typing import Unpack

from longspan.integrations.common import Model, missing, reader_of
from longspan.pipeline.options import ReadingOptions

try:
    from langchain_core.embeddings import Embeddings
except ImportError as error:
    raise missing("langchain-core", "langchain") from error


class LongspanEmbeddings(Embeddings):
    """Vectors for LangChain's stores and retrievers, made by a Reader.

    `model` is a Reader, or what longspan.load() takes, with its options: overflow="window" reads documents of
    any length. Queries and documents get the prompts that the model has for them.
    """

    def __init__(self, model: Model = "default", **options: Unpack[ReadingOptions]) -> None:
        self.reader = reader_of(model, **options)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector for each text."""
        vectors: list[list[float]] = self.reader.encode_document(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        vector: list[float] = self.reader.encode_query(text).tolist()
        return vector
