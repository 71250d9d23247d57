"""What encode() can be asked for: the options of sentence-transformers beside our own, by kind of result."""

from collections.abc import Sequence
from typing import Literal, Required

import torch
from torch import Tensor

from longspan.pipeline.options import ReadingOptions
from longspan.shapes import Matrix, SignedBytes, UnsignedBytes, Vector
from longspan.tasks.precision import Precision
from longspan.workers import WorkerPool

Device = str | torch.device
EncodeResult = (
    Vector
    | Matrix
    | SignedBytes
    | UnsignedBytes
    | Tensor
    | list[Tensor]
    | dict[str, Tensor]
    | list[dict[str, Tensor]]
)
OUTPUTS = ("sentence_embedding", "token_embeddings")


class VectorOptions(ReadingOptions, total=False):
    """How vectors are made, beside how documents are read."""

    pooling: str | None
    normalize: bool | None
    prompt: str | None
    prompt_name: str | None
    show_progress_bar: bool | None
    normalize_embeddings: bool
    batch_size: int | None
    truncate_dim: int | None
    chunk_size: int | None


class EncodeOptions(VectorOptions, total=False):
    """The same, and where they are made."""

    device: Device | Sequence[Device] | None
    pool: WorkerPool | None


class ArrayOptions(EncodeOptions, total=False):
    """Vectors as arrays of NumPy."""

    convert_to_numpy: Literal[True]
    convert_to_tensor: Literal[False]
    output_value: Literal["sentence_embedding"]
    precision: Literal["float32"]


class TensorOptions(EncodeOptions, total=False):
    """Vectors as one tensor."""

    convert_to_numpy: bool
    convert_to_tensor: Required[Literal[True]]
    output_value: Literal["sentence_embedding"]
    precision: Precision


class SeparateOptions(EncodeOptions, total=False):
    """One tensor for each text."""

    convert_to_numpy: Required[Literal[False]]
    convert_to_tensor: Literal[False]
    output_value: Literal["sentence_embedding"]
    precision: Precision


class SignedOptions(EncodeOptions, total=False):
    """Vectors as bytes with a sign."""

    convert_to_numpy: Literal[True]
    convert_to_tensor: Literal[False]
    output_value: Literal["sentence_embedding"]
    precision: Required[Literal["int8", "binary"]]


class UnsignedOptions(EncodeOptions, total=False):
    """Vectors as bytes without a sign."""

    convert_to_numpy: Literal[True]
    convert_to_tensor: Literal[False]
    output_value: Literal["sentence_embedding"]
    precision: Required[Literal["uint8", "ubinary"]]


class TokenOptions(EncodeOptions, total=False):
    """The vectors of each text's tokens."""

    convert_to_numpy: bool
    convert_to_tensor: bool
    output_value: Required[Literal["token_embeddings"]]
    precision: Literal["float32"]


class EverythingOptions(EncodeOptions, total=False):
    """All that sentence-transformers calls features of a text."""

    convert_to_numpy: bool
    convert_to_tensor: bool
    output_value: Required[None]
    precision: Literal["float32"]


class AnyOptions(EncodeOptions, total=False):
    """Whatever is not known before it runs."""

    convert_to_numpy: bool
    convert_to_tensor: bool
    output_value: Literal["sentence_embedding", "token_embeddings"] | None
    precision: Precision
