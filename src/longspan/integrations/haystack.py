"""Haystack: a Reader as an embedder of texts and of documents."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from longspan.errors import bad
from longspan.integrations.common import Model, missing, reader_of
from longspan.pipeline.options import ReadingOptions
from longspan.reader import Reader

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise missing("haystack-ai", "haystack") from error


@component
class LongspanTextEmbedder:
    """The vector of a text, such as a question: {"embedding": [...]}.

    `model` is a Reader, or what longspan.load() takes, with `options`; it is loaded when it is first needed.
    """

    def __init__(self, model: Model = "default", options: ReadingOptions | None = None) -> None:
        self.model, self.options = model, options
        self._reader: Reader | None = None

    def warm_up(self) -> None:
        """Load the model."""
        if self._reader is None:
            self._reader = reader_of(self.model, **(self.options or {}))

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, list[float]]:
        """Read a text as a query."""
        if not isinstance(text, str):
            repair = "Use LongspanDocumentEmbedder for documents."
            raise bad("text", "a text (str)", type(text).__name__, repair)
        self.warm_up()
        assert self._reader is not None
        return {"embedding": self._reader.encode_query(text).tolist()}

    def to_dict(self) -> dict[str, Any]:
        """The component as Haystack saves it."""
        made: dict[str, Any] = default_to_dict(self, model=_name(self.model), options=self.options)
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "LongspanTextEmbedder":
        """The component of such a dict."""
        made: LongspanTextEmbedder = default_from_dict(cls, data)
        return made


@component
class LongspanDocumentEmbedder:
    """Documents with their vectors: {"documents": [...]}, new ones, in the given order.

    `meta_fields_to_embed` are put before the content, with `embedding_separator` between them.
    """

    def __init__(
        self,
        model: Model = "default",
        options: ReadingOptions | None = None,
        meta_fields_to_embed: Sequence[str] = (),
        embedding_separator: str = "\n",
    ) -> None:
        self.model, self.options = model, options
        self.meta_fields_to_embed, self.embedding_separator = list(meta_fields_to_embed), embedding_separator
        self._reader: Reader | None = None

    def warm_up(self) -> None:
        """Load the model."""
        if self._reader is None:
            self._reader = reader_of(self.model, **(self.options or {}))

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, list[Document]]:
        """Read documents whole."""
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            repair = "Use LongspanTextEmbedder for a text."
            raise bad("documents", "a list of Documents", type(documents).__name__, repair)
        self.warm_up()
        assert self._reader is not None
        vectors = self._reader.encode_document([self._text(document) for document in documents])
        pairs = zip(documents, vectors.tolist(), strict=True)
        return {"documents": [replace(document, embedding=vector) for document, vector in pairs]}

    def to_dict(self) -> dict[str, Any]:
        """The component as Haystack saves it."""
        made: dict[str, Any] = default_to_dict(
            self,
            model=_name(self.model),
            options=self.options,
            meta_fields_to_embed=self.meta_fields_to_embed,
            embedding_separator=self.embedding_separator,
        )
        return made

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "LongspanDocumentEmbedder":
        """The component of such a dict."""
        made: LongspanDocumentEmbedder = default_from_dict(cls, data)
        return made

    def _text(self, document: Document) -> str:
        fields = (document.meta.get(name) for name in self.meta_fields_to_embed)
        stated = [str(value) for value in fields if value is not None]
        return self.embedding_separator.join([*stated, document.content or ""])


def _name(model: Model) -> str:
    """What can be written to a file of what a component was made with."""
    if isinstance(model, str | Path):
        return str(model)
    raise bad(
        "model",
        "a name or a folder, for the component to be saved",
        "a Reader",
        "Give that to the component.",
    )
