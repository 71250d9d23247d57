"""MTEB: a Reader as an encoder that mteb.evaluate() takes."""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor

from longspan.integrations.common import Model, missing, reader_of
from longspan.pipeline.options import ReadingOptions
from longspan.reader import Reader
from longspan.shapes import Matrix
from longspan.tasks.similarity import VectorLike

try:
    from mteb.models import ModelMeta
except ImportError as error:
    raise missing("mteb", "mteb") from error


class LongspanEncoder:
    """MTEB's EncoderProtocol: texts of a DataLoader to vectors, with the model's prompts.

    `model` is a Reader, or what longspan.load() takes, with `options`; `name` is what results go
    by. Queries are read as encode_query() reads them, everything else as encode_document() does.
    """

    def __init__(
        self,
        model: Model = "default",
        revision: str | None = None,
        *,
        name: str | None = None,
        device: str | None = None,
        options: ReadingOptions | None = None,
    ) -> None:
        self.reader = reader_of(model, **(options or {}))
        if device is not None:
            self.reader.to(device)
        kind = type(self.reader.model.backbone).__name__
        stated = f"longspan/{kind if isinstance(model, Reader) else str(model).strip('/').rpartition('/')[2]}"
        self._meta = ModelMeta.create_empty(
            overwrites={
                "name": name or stated,
                "revision": revision or "unknown",
                "embed_dim": self.reader.get_embedding_dimension(),
                "max_tokens": self.reader.max_seq_length,
            }
        )

    @property
    def mteb_model_meta(self) -> ModelMeta:
        """What MTEB writes about the model."""
        return self._meta

    def encode(
        self,
        inputs: Iterable[Mapping[str, list[str]]],
        *,
        task_metadata: object = None,
        hf_split: str = "",
        hf_subset: str = "",
        prompt_type: object = None,
        show_progress_bar: bool | None = None,
        **options: Any,
    ) -> Matrix:
        """(n, C): one vector for each text of the batches; `batch_size` is not needed."""
        texts = [text for batch in inputs for text in batch["text"]]
        asked = getattr(prompt_type, "value", prompt_type) == "query"
        read = self.reader.encode_query if asked else self.reader.encode_document
        return read(texts, show_progress_bar=show_progress_bar)

    def similarity(self, embeddings1: VectorLike, embeddings2: VectorLike) -> Tensor:
        """How alike each of the first is to each of the second, as the model compares."""
        return self.reader.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: VectorLike, embeddings2: VectorLike) -> Tensor:
        """How alike the vectors in the same places are."""
        return self.reader.similarity_pairwise(embeddings1, embeddings2)
