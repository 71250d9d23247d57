"""Embedder: a model with its tokenizer gives vectors, whatever else it was made for."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Unpack, overload

import torch
from torch import Tensor

from longspan import workers
from longspan.errors import bad, whole
from longspan.pipeline import inputs as given
from longspan.pipeline.inputs import Inputs, PathLike
from longspan.pipeline.run import Results
from longspan.shapes import Matrix, SignedBytes, UnsignedBytes, Vector
from longspan.tasks import encode
from longspan.tasks.encode import Embedding, Vectors
from longspan.tasks.encode_options import (
    AnyOptions,
    ArrayOptions,
    Device,
    EncodeOptions,
    EncodeResult,
    EverythingOptions,
    SeparateOptions,
    SignedOptions,
    TensorOptions,
    TokenOptions,
    UnsignedOptions,
    VectorOptions,
)
from longspan.tasks.encode_passages import How, PassageOptions, Passages, encode_passages
from longspan.tasks.encode_results import Shape, shaped
from longspan.text_model import TextModel, placed
from longspan.workers import WorkerPool

Texts = str | Iterable[str]


class Embedder(TextModel):
    """What every Reader can do: vectors of documents of any length, in the given order."""

    @overload
    def encode(self, texts: str, **options: Unpack[ArrayOptions]) -> Vector: ...
    @overload
    def encode(self, texts: Iterable[str], **options: Unpack[ArrayOptions]) -> Matrix: ...
    @overload
    def encode(self, texts: Texts, **options: Unpack[TensorOptions]) -> Tensor: ...
    @overload
    def encode(self, texts: str, **options: Unpack[SeparateOptions]) -> Tensor: ...
    @overload
    def encode(self, texts: Iterable[str], **options: Unpack[SeparateOptions]) -> list[Tensor]: ...
    @overload
    def encode(self, texts: Texts, **options: Unpack[SignedOptions]) -> SignedBytes: ...
    @overload
    def encode(self, texts: Texts, **options: Unpack[UnsignedOptions]) -> UnsignedBytes: ...
    @overload
    def encode(self, texts: str, **options: Unpack[TokenOptions]) -> Tensor: ...
    @overload
    def encode(self, texts: Iterable[str], **options: Unpack[TokenOptions]) -> list[Tensor]: ...
    @overload
    def encode(self, texts: str, **options: Unpack[EverythingOptions]) -> dict[str, Tensor]: ...
    @overload
    def encode(
        self, texts: Iterable[str], **options: Unpack[EverythingOptions]
    ) -> list[dict[str, Tensor]]: ...
    @overload
    def encode(
        self,
        texts: Texts | None = ...,
        *,
        inputs: Texts | None = ...,
        sentences: Texts | None = ...,
        **options: Unpack[AnyOptions],
    ) -> EncodeResult: ...
    def encode(
        self,
        texts: Texts | None = None,
        *,
        inputs: Texts | None = None,
        sentences: Texts | None = None,
        **options: Unpack[AnyOptions],
    ) -> EncodeResult:
        """Vectors, as sentence-transformers gives them: (C,) for a text, (B, C) for a list, in float32.

        `pooling` is "mean", "first", "max" or, for some models, "sif"; None is what the model was made for.
        normalize=True gives vectors of length 1. Windows of a document are averaged, weighted by tokens
        (pooling="max": their maximum). `prompt`, or the model's own of the name `prompt_name`, precedes each
        text. The rest means what it means in sentence-transformers: `truncate_dim`, `normalize_embeddings`,
        `precision` of the result, `output_value`, `convert_to_numpy` and `convert_to_tensor`, `device`, and
        `pool` with `chunk_size`, for several processes. `batch_size` is checked and not needed, since batches
        are filled by tokens. `inputs` and `sentences` are other names of `texts`.
        """
        return self._encoded(_only(texts, inputs, sentences), {**options})

    @overload
    def encode_query(self, texts: str, **options: Unpack[ArrayOptions]) -> Vector: ...
    @overload
    def encode_query(self, texts: Iterable[str], **options: Unpack[ArrayOptions]) -> Matrix: ...
    @overload
    def encode_query(self, texts: Texts, **options: Unpack[TensorOptions]) -> Tensor: ...
    @overload
    def encode_query(
        self,
        texts: Texts | None = ...,
        *,
        inputs: Texts | None = ...,
        sentences: Texts | None = ...,
        **options: Unpack[AnyOptions],
    ) -> EncodeResult: ...
    def encode_query(
        self,
        texts: Texts | None = None,
        *,
        inputs: Texts | None = None,
        sentences: Texts | None = None,
        **options: Unpack[AnyOptions],
    ) -> EncodeResult:
        """encode() with the prompt that the model has for queries, if it has one.

        A model that reads block by block takes a query as one block, and all its words count alike.
        """
        changed: dict[str, Any] = {"whole": True, **options}
        if encode.pooling_of(self.model, None, None)[0] == "sif":
            changed.setdefault("pooling", "mean")
        return self._encoded(_only(texts, inputs, sentences), self._named(self.query_prompt_name, changed))

    @overload
    def encode_document(self, texts: str, **options: Unpack[ArrayOptions]) -> Vector: ...
    @overload
    def encode_document(self, texts: Iterable[str], **options: Unpack[ArrayOptions]) -> Matrix: ...
    @overload
    def encode_document(self, texts: Texts, **options: Unpack[TensorOptions]) -> Tensor: ...
    @overload
    def encode_document(
        self,
        texts: Texts | None = ...,
        *,
        inputs: Texts | None = ...,
        sentences: Texts | None = ...,
        **options: Unpack[AnyOptions],
    ) -> EncodeResult: ...
    def encode_document(
        self,
        texts: Texts | None = None,
        *,
        inputs: Texts | None = None,
        sentences: Texts | None = None,
        **options: Unpack[AnyOptions],
    ) -> EncodeResult:
        """encode() with the prompt that the model has for documents, if it has one."""
        changed = self._named(self.document_prompt_name, {**options})
        return self._encoded(_only(texts, inputs, sentences), changed)

    @overload
    def encode_tokens(self, texts: str, **options: Unpack[EncodeOptions]) -> Matrix: ...
    @overload
    def encode_tokens(self, texts: Iterable[str], **options: Unpack[EncodeOptions]) -> list[Matrix]: ...
    def encode_tokens(self, texts: Texts, **options: Unpack[EncodeOptions]) -> Matrix | list[Matrix]:
        """One vector for each token, (n, C)."""
        results = self._embeddings(texts, ("token_embeddings",), {**options})
        rows = [one["token_embeddings"] for one in results.items]
        return rows[0] if results.single else rows

    @overload
    def encode_with_details(
        self, texts: str, *, tokens: bool = ..., **options: Unpack[EncodeOptions]
    ) -> Embedding: ...
    @overload
    def encode_with_details(
        self, texts: Iterable[str], *, tokens: bool = ..., **options: Unpack[EncodeOptions]
    ) -> list[Embedding]: ...
    def encode_with_details(
        self, texts: Texts, *, tokens: bool = False, **options: Unpack[EncodeOptions]
    ) -> Embedding | list[Embedding]:
        """{sentence_embedding, n_tokens, truncated, windows}; with `tokens` also token_embeddings."""
        kinds = encode.EVERYTHING if tokens else ("sentence_embedding",)
        return self._embeddings(texts, kinds, {**options}).unwrap()

    def encode_passages(
        self,
        document: str | PathLike,
        spans: Iterable[tuple[int, int]] | None = None,
        **options: Unpack[PassageOptions],
    ) -> Passages:
        """Late chunking: one vector for each passage of a document that is read whole, with its place.

        `spans` are pairs (start, end) of characters; None cuts the text into passages of up to 126 tokens,
        between paragraphs or sentences if possible. A vector is the mean of the tokens that reach into its
        span (weighted, if the model weighs its words), normalized if the model's vectors are. A document that
        is longer than the model is read in windows.
        """
        rest = self._named(self.document_prompt_name, {**options})
        how, before = self._how(rest), self._prompt(rest.pop("prompt", None), rest.pop("prompt_name", None))
        return encode_passages(self._pipeline("encode"), document, spans, How(*how), before, rest)

    def encode_multi_process(
        self, sentences: Iterable[str], pool: WorkerPool, **options: Unpack[VectorOptions]
    ) -> Matrix:
        """encode() of a list by the processes of a pool, as older code calls it."""
        results = self._embeddings(list(sentences), ("sentence_embedding",), {**options, "pool": pool})
        return encode.stacked(results.items, options.get("truncate_dim") or self.get_embedding_dimension())

    def start_multi_process_pool(self, target_devices: Sequence[Device] | None = None) -> WorkerPool:
        """Processes that encode(pool=...) shares its texts among: one for each device.

        None is one for each thread of torch, up to four, on the CPU. Threads are divided among them. Weights
        are shared, not copied. A script that starts processes needs `if __name__ == "__main__":`.
        """
        devices = workers.cpus() if target_devices is None else [placed(device) for device in target_devices]
        return workers.start(partial(_Worker, self), devices)

    @staticmethod
    def stop_multi_process_pool(pool: WorkerPool) -> None:
        """End the processes of a pool."""
        workers.stop(pool)

    def _named(self, prompt_name: str | None, options: dict[str, Any]) -> dict[str, Any]:
        """The options with the prompt of that name if they have none; without a name none is put before."""
        if options.get("prompt") is None and options.get("prompt_name") is None:
            return options | ({"prompt": ""} if prompt_name is None else {"prompt_name": prompt_name})
        return options

    def _encoded(self, texts: object, options: dict[str, Any]) -> EncodeResult:
        """What encode() and its kin return."""
        shape = Shape.of(options)
        width = options.get("truncate_dim") or self.get_embedding_dimension()
        return shaped(self._embeddings(texts, shape.kinds, options), shape, width)

    def _embeddings(
        self, texts: object, kinds: tuple[str, ...], options: dict[str, Any]
    ) -> Results[Embedding]:
        """The vectors of each text, made here or by other processes."""
        taken = texts if isinstance(texts, Inputs) else given.texts("texts", texts)
        take = options.pop
        device, pool, chunk_size = take("device", None), take("pool", None), take("chunk_size", None)
        if (size := take("batch_size", None)) is not None:
            whole("batch_size", size, 1)
        if (shown := take("show_progress_bar", None)) is not None:
            options["progress"] = shown
        if pool is None and (device is None or isinstance(device, str | torch.device)):
            if device is not None and placed(device) != self.device:
                self.to(device)
            return Results(self._vectors(taken, kinds, options), taken.single)
        own = self.start_multi_process_pool(device) if pool is None else None
        shown = options.pop("progress", self.options.progress)
        options |= {"kinds": kinds, "progress": False}
        try:
            named = list(zip(taken.names, taken.items, strict=True))
            found = workers.results(own or pool, named, options, chunk_size=chunk_size, shown=shown)
        finally:
            if own is not None:
                workers.stop(own)
        return Results(found, taken.single)

    def _vectors(self, taken: Inputs, kinds: tuple[str, ...], options: dict[str, Any]) -> list[Embedding]:
        """The vectors of each text, made here."""
        how = Vectors(kinds, *self._how(options))
        before = self._prompt(options.pop("prompt", None), options.pop("prompt_name", None))
        return encode.encode(self._pipeline("encode"), taken, how, before, options)

    def _how(self, options: dict[str, Any]) -> tuple[str, bool, int | None, bool]:
        """The fields of Vectors, taken out of the options."""
        take = options.pop
        pooling, normalize, cut = take("pooling", None), take("normalize", None), take("truncate_dim", None)
        normalize = True if take("normalize_embeddings", False) else normalize  # False: as the model does
        cut = self.truncate_dim if cut is None else self._dimensions(cut)
        return *encode.pooling_of(self.model, pooling, normalize), cut, normalize is True


class _Worker:
    """A Reader in a process of its own."""

    def __init__(self, reader: Embedder, device: Device) -> None:
        self._reader = reader.to(device)

    def __call__(self, items: list[Any], options: dict[str, Any]) -> list[Embedding]:
        kinds = options.pop("kinds")
        taken = Inputs([text for _, text in items], [name for name, _ in items], single=False)
        return self._reader._vectors(taken, kinds, options)


def _only(texts: Texts | None, inputs: Texts | None, sentences: Texts | None) -> Texts | None:
    """The texts, by whatever name they were given."""
    found = [each for each in (texts, inputs, sentences) if each is not None]
    if len(found) > 1:
        raise bad("texts", "given once", f"{len(found)} times", "`inputs` and `sentences` are the same.")
    return found[0] if found else None
