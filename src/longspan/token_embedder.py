"""TokenEmbedder: the part of a Reader that makes vectors or weights of tokens."""

from collections.abc import Iterable
from typing import Unpack, overload

from longspan.embedder import Embedder
from longspan.errors import bad
from longspan.pipeline import inputs
from longspan.pipeline.options import ReadingOptions
from longspan.pipeline.run import Pipeline
from longspan.shapes import Matrix
from longspan.tasks import late_interaction, token_heads


class PromptOptions(ReadingOptions, total=False):
    """What precedes each text, beside how documents are read."""

    prompt: str | None
    prompt_name: str | None


class TokenEmbedder(Embedder):
    """Text in, vectors or weights of its tokens out, for models of late interaction and of sparse words."""

    @overload
    def encode_query_tokens(self, texts: str, **options: Unpack[ReadingOptions]) -> Matrix: ...
    @overload
    def encode_query_tokens(
        self, texts: Iterable[str], **options: Unpack[ReadingOptions]
    ) -> list[Matrix]: ...
    def encode_query_tokens(
        self, texts: str | Iterable[str], **options: Unpack[ReadingOptions]
    ) -> Matrix | list[Matrix]:
        """What a model of late interaction makes of each query: vectors (n, D) of length 1 for its tokens.

        The query stands behind the model's token for queries, and is filled up with mask tokens if the model
        was trained so; a longer one is read whole.
        """
        taken, settings = inputs.texts("texts", texts), late_interaction.Settings.of(self.config)
        rows = late_interaction.query_tokens(self._late("encode_query_tokens"), taken, settings, options)
        return rows[0] if taken.single else rows

    @overload
    def encode_document_tokens(self, texts: str, **options: Unpack[ReadingOptions]) -> Matrix: ...
    @overload
    def encode_document_tokens(
        self, texts: Iterable[str], **options: Unpack[ReadingOptions]
    ) -> list[Matrix]: ...
    def encode_document_tokens(
        self, texts: str | Iterable[str], **options: Unpack[ReadingOptions]
    ) -> Matrix | list[Matrix]:
        """The same of each document, read whole; tokens on the model's skip list have no vector."""
        taken, settings = inputs.texts("texts", texts), late_interaction.Settings.of(self.config)
        pipeline = self._late("encode_document_tokens")
        read = late_interaction.document_tokens(pipeline, taken, settings, options)
        rows = [vectors for vectors, _ in read]
        return rows[0] if taken.single else rows

    @staticmethod
    def max_sim(queries: Iterable[Matrix], documents: Iterable[Matrix]) -> Matrix:
        """(Q, D): the score of each query with each document, given as vectors of their tokens.

        The sum over the query's tokens of the largest product with a token of the document, in float32.
        """
        return late_interaction.all_with_all(list(queries), list(documents))

    def _late(self, verb: str) -> Pipeline:
        if self.task != late_interaction.LATE_INTERACTION.name:
            raise bad("task", f"{late_interaction.LATE_INTERACTION.name} to call {verb}()", self.task)
        return self._pipeline(self.task)

    @overload
    def encode_sparse(self, texts: str, **options: Unpack[PromptOptions]) -> dict[int, float]: ...
    @overload
    def encode_sparse(
        self, texts: Iterable[str], **options: Unpack[PromptOptions]
    ) -> list[dict[int, float]]: ...
    def encode_sparse(
        self, texts: str | Iterable[str], **options: Unpack[PromptOptions]
    ) -> dict[int, float] | list[dict[int, float]]:
        """{token id: weight} for each text, of a model with such a head (BGE-M3): a word counts once, by its
        largest weight, and special tokens do not. Two texts are compared by the sum of products.
        """
        before, rest = self._before(options)
        return token_heads.sparse(self._pipeline("encode"), texts, before, rest).unwrap()

    @overload
    def encode_multi_vector(self, texts: str, **options: Unpack[PromptOptions]) -> Matrix: ...
    @overload
    def encode_multi_vector(self, texts: Iterable[str], **options: Unpack[PromptOptions]) -> list[Matrix]: ...
    def encode_multi_vector(
        self, texts: str | Iterable[str], **options: Unpack[PromptOptions]
    ) -> Matrix | list[Matrix]:
        """Vectors of length 1 (n - 1, D) for all tokens of a text but the first, of a model with such a head.

        Two texts are compared as ColBERT does: for each vector of the query the largest product, on average.
        """
        before, rest = self._before(options)
        return token_heads.vectors(self._pipeline("encode"), texts, before, rest).unwrap()

    def _before(self, options: PromptOptions) -> tuple[str, dict[str, object]]:
        """The prompt that precedes each text, and the options that remain."""
        rest: dict[str, object] = {**options}
        for name in ("prompt", "prompt_name"):
            rest.pop(name, None)
        return self._prompt(options.get("prompt"), options.get("prompt_name")), rest
