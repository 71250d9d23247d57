"""Embedder: a model with its tokenizer gives vectors, whatever else it was made for."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from longspan.checkpoints.save import CONFIG, GENERATION, PROMPTS, is_reader_file, write_model
from longspan.errors import bad, one_of
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import as_json, replaced_files
from longspan.nn.quantized import is_quantized
from longspan.pipeline.inputs import prompts_by_name, string
from longspan.pipeline.options import Options, ReadingOptions
from longspan.pipeline.run import Pipeline, Results
from longspan.shapes import Matrix, Vector
from longspan.tasks import encode
from longspan.tasks.base import wrong_task
from longspan.tasks.classify import PROBLEMS
from longspan.tasks.encode import Embedding, Vectors
from longspan.tasks.registry import task_of
from longspan.text.tokenizer import Tokenizer

VectorLike = Vector | Matrix | Tensor | Sequence[float]


class EncodeOptions(ReadingOptions, total=False):
    """How vectors are made, beside how documents are read."""

    pooling: str | None
    normalize: bool | None
    prompt: str | None
    prompt_name: str | None
    show_progress_bar: bool | None
    normalize_embeddings: bool | None
    batch_size: int | None


class ArrayOptions(EncodeOptions, total=False):
    """Vectors as arrays of NumPy."""

    convert_to_tensor: Literal[False]


class TensorOptions(EncodeOptions):
    """Vectors as tensors."""

    convert_to_tensor: Literal[True]


class Embedder:
    """What every Reader can do: vectors of documents of any length, in the given order."""

    def __init__(
        self,
        model: TaskModel,
        tokenizer: Tokenizer,
        *,
        labels: Sequence[str] = (),
        problem: str | None = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        config: Mapping[str, object] | None = None,
        generation: Mapping[str, object] | None = None,
        **options: Unpack[ReadingOptions],
    ) -> None:
        self.model, self.tokenizer = model, tokenizer
        task = task_of(model.architecture)
        self.task = task.name
        count = len(model.head.get_parameter("out.bias")) if task.has_labels else 0
        self.labels = tuple(labels) or tuple(f"LABEL_{i}" for i in range(count))
        if len(self.labels) != count:
            raise bad("labels", f"{count} names, as many as the model has", f"{len(self.labels)} names")
        self.problem = None if problem is None else one_of("problem", problem, PROBLEMS)
        self.prompts, self.default_prompt_name = prompts_by_name(prompts), default_prompt_name
        if default_prompt_name is not None:
            one_of("default_prompt_name", default_prompt_name, self.prompts)
        self.config, self.generation = dict(config or {}), dict(generation or {})
        self.options = Options().but(**options)

    @overload
    def encode(self, texts: str, **options: Unpack[ArrayOptions]) -> Vector: ...
    @overload
    def encode(self, texts: Iterable[str], **options: Unpack[ArrayOptions]) -> Matrix: ...
    @overload
    def encode(self, texts: str | Iterable[str], **options: Unpack[TensorOptions]) -> Tensor: ...
    def encode(
        self, texts: str | Iterable[str], *, convert_to_tensor: bool = False, **options: Unpack[EncodeOptions]
    ) -> Vector | Matrix | Tensor:
        """Vectors, as sentence-transformers gives them: (C,) for a text, (B, C) for a list, in float32.

        `pooling` is "mean", "first", "max" or, for some models, "sif"; None is what the model was made for.
        normalize=True gives vectors of length 1. Windows of a document are averaged, weighted by tokens
        (pooling="max": their maximum). `prompt`, or the model's own of the name `prompt_name`, precedes each
        text. `batch_size` is accepted and not needed, since batches are filled by tokens.
        """
        results = self._embeddings(texts, ("sentence_embedding",), options)
        vectors = encode.stacked(results.items, self.model.config.width)
        chosen: Vector | Matrix = vectors[0] if results.single else vectors
        return torch.from_numpy(chosen) if convert_to_tensor else chosen

    @overload
    def encode_query(self, texts: str, **options: Unpack[ArrayOptions]) -> Vector: ...
    @overload
    def encode_query(self, texts: Iterable[str], **options: Unpack[ArrayOptions]) -> Matrix: ...
    @overload
    def encode_query(self, texts: str | Iterable[str], **options: Unpack[TensorOptions]) -> Tensor: ...
    def encode_query(
        self, texts: str | Iterable[str], *, convert_to_tensor: bool = False, **options: Unpack[EncodeOptions]
    ) -> Vector | Matrix | Tensor:
        """encode() with the prompt that the model has for queries, if it has one.

        A model that reads block by block takes a query as one block, and all its words count alike.
        """
        how, _ = encode.pooling_of(self.model, None, None)
        usual: EncodeOptions = {"whole": True, "prompt_name": self.query_prompt_name}
        if how == "sif":
            usual["pooling"] = "mean"
        changed: EncodeOptions = {**usual, **options}
        return self.encode(texts, convert_to_tensor=convert_to_tensor, **changed)  # type: ignore[call-overload, no-any-return]

    @overload
    def encode_document(self, texts: str, **options: Unpack[ArrayOptions]) -> Vector: ...
    @overload
    def encode_document(self, texts: Iterable[str], **options: Unpack[ArrayOptions]) -> Matrix: ...
    @overload
    def encode_document(self, texts: str | Iterable[str], **options: Unpack[TensorOptions]) -> Tensor: ...
    def encode_document(
        self, texts: str | Iterable[str], *, convert_to_tensor: bool = False, **options: Unpack[EncodeOptions]
    ) -> Vector | Matrix | Tensor:
        """encode() with the prompt that the model has for documents, if it has one."""
        changed: EncodeOptions = {"prompt_name": self.document_prompt_name, **options}
        return self.encode(texts, convert_to_tensor=convert_to_tensor, **changed)  # type: ignore[call-overload, no-any-return]

    @overload
    def encode_tokens(self, texts: str, **options: Unpack[EncodeOptions]) -> Matrix: ...
    @overload
    def encode_tokens(self, texts: Iterable[str], **options: Unpack[EncodeOptions]) -> list[Matrix]: ...
    def encode_tokens(
        self, texts: str | Iterable[str], **options: Unpack[EncodeOptions]
    ) -> Matrix | list[Matrix]:
        """One vector for each token, (n, C)."""
        results = self._embeddings(texts, ("token_embeddings",), options)
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
        self, texts: str | Iterable[str], *, tokens: bool = False, **options: Unpack[EncodeOptions]
    ) -> Embedding | list[Embedding]:
        """{sentence_embedding, n_tokens, truncated, windows}; with `tokens` also token_embeddings."""
        kinds = encode.EVERYTHING if tokens else ("sentence_embedding",)
        return self._embeddings(texts, kinds, options).unwrap()

    @staticmethod
    def similarity(a: VectorLike, b: VectorLike) -> Tensor:
        """The cosine of each vector of `a` (A, C) with each of `b` (B, C), as a tensor (A, B)."""
        left, right = (torch.atleast_2d(torch.as_tensor(np.asarray(vectors))).float() for vectors in (a, b))
        return F.normalize(left) @ F.normalize(right).T

    def save(self, folder: str | Path) -> None:
        """Write the model and the tokenizer, so that longspan.load and transformers can read them.

        They take the place of a model that is there, all files or none, even if the process is killed; files
        that do not belong to it are kept.
        """
        labels, token_types = (
            self.labels or None,
            self.model.config.reads_token_types(self.model.architecture),
        )
        with replaced_files(Path(folder), owns=is_reader_file, last=CONFIG) as fresh:
            write_model(self.model, fresh, labels=labels, problem=self.problem, extra=self.config)
            self.tokenizer.write(fresh, token_types=token_types)
            if self.prompts:
                stated = {"prompts": self.prompts, "default_prompt_name": self.default_prompt_name}
                (fresh / PROMPTS).write_text(as_json(stated))
            if self.generation:
                (fresh / GENERATION).write_text(as_json(self.generation))

    def __repr__(self) -> str:
        config, weight = self.model.config, next(self.model.parameters())
        kind, dtype = type(self.model.backbone).__name__, str(weight.dtype).removeprefix("torch.")
        size = f"{config.layers} layers, {config.width} wide, up to {self.model.longest} tokens"
        dtype = "int8" if is_quantized(self.model) else dtype
        where = f"{dtype} on {weight.device}, overflow={self.options.overflow!r}"
        return f"Reader({self.task!r}, {kind} of {size}, {where})"

    def _pipeline(self, verb: str) -> Pipeline:
        """What the verb runs on; every model can encode."""
        if verb not in (self.task, encode.ENCODE.name):
            raise wrong_task(verb, self.task)
        return Pipeline(self.model, self.tokenizer, self.options)

    def _embeddings(
        self, texts: object, kinds: tuple[str, ...], options: EncodeOptions
    ) -> Results[Embedding]:
        rest: dict[str, Any] = dict(options)
        pooling, normalize = rest.pop("pooling", None), rest.pop("normalize", None)
        alias, shown = rest.pop("normalize_embeddings", None), rest.pop("show_progress_bar", None)
        before = self._prompt(rest.pop("prompt", None), rest.pop("prompt_name", None))
        rest.pop("batch_size", None)
        if shown is not None:
            rest["progress"] = shown
        how = encode.pooling_of(self.model, pooling, normalize if alias is None else alias)
        return encode.encode(self._pipeline("encode"), texts, Vectors(kinds, *how), before, rest)

    @property
    def query_prompt_name(self) -> str | None:
        """The name of the prompt that the model has for queries, if it has one."""
        return "query" if "query" in self.prompts else None

    @property
    def document_prompt_name(self) -> str | None:
        """The name of the prompt that the model has for documents, if it has one."""
        return next((name for name in ("document", "passage", "corpus") if name in self.prompts), None)

    def _prompt(self, prompt: str | None, name: str | None) -> str:
        if prompt is not None:
            return string("prompt", prompt)
        name = self.default_prompt_name if name is None else name
        if name is not None and not self.prompts:
            raise bad(
                "prompt_name", "left out, as the model has no prompts", name, "Give the text as prompt=."
            )
        return "" if name is None else self.prompts[one_of("prompt_name", name, self.prompts)]
