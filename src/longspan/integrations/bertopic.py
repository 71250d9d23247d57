"""BERTopic: a Reader as a backend."""

from collections.abc import Sequence
from typing import Unpack

from longspan.integrations.common import Model, missing, reader_of
from longspan.pipeline.options import ReadingOptions
from longspan.shapes import Matrix

try:
    from bertopic.backend import BaseEmbedder
except ImportError as error:
    raise missing("bertopic", "bertopic") from error


class LongspanBackend(BaseEmbedder):
    """The embedding model of BERTopic(embedding_model=...): documents are read by a Reader.

    BERTopic knows models by their classes and replaces one that it does not know by one of its own, so a
    Reader has to be given in this.
    """

    def __init__(self, model: Model = "default", **options: Unpack[ReadingOptions]) -> None:
        super().__init__()
        self.embedding_model = reader_of(model, **options)

    def embed(self, documents: Sequence[str], verbose: bool = False) -> Matrix:
        """(n, C): one vector for each document or word."""
        return self.embedding_model.encode(list(documents), show_progress_bar=verbose)
