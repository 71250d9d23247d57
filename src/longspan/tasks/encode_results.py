"""The shape in which encode() gives its vectors: an array, a tensor, tensors, tokens, or everything."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from longspan.errors import bad, one_of
from longspan.pipeline.run import Results
from longspan.tasks.encode import FEATURES, Embedding, stacked
from longspan.tasks.encode_options import OUTPUTS, EncodeResult
from longspan.tasks.precision import check_precision, quantized


class Shape(NamedTuple):
    """What is wanted, in the words of sentence-transformers."""

    output: str | None
    precision: str
    array: bool
    tensor: bool

    @staticmethod
    def of(options: dict[str, Any]) -> "Shape":
        """Taken out of the options of a call."""
        output = options.pop("output_value", OUTPUTS[0])
        shape = Shape(
            None if output is None else one_of("output_value", output, OUTPUTS),
            check_precision(options.pop("precision", None)),
            bool(options.pop("convert_to_numpy", True)),
            bool(options.pop("convert_to_tensor", False)),
        )
        if shape.precision != "float32" and output != OUTPUTS[0]:
            raise bad("precision", f"'float32' for output_value={output!r}", shape.precision)
        return shape

    @property
    def kinds(self) -> tuple[str, ...]:
        """What has to be computed for it."""
        return FEATURES if self.output is None else (self.output,)


def shaped(results: Results[Embedding], shape: Shape, width: int) -> EncodeResult:
    """The vectors of texts as they are wanted; tensors are on the CPU."""
    if shape.output == "sentence_embedding":
        return _vectors(results, shape, width)
    if shape.output is None:
        features = [_features(one) for one in results.items]
        return features[0] if results.single else features
    rows = [torch.from_numpy(one["token_embeddings"]) for one in results.items]
    return rows[0] if results.single else rows


def _vectors(results: Results[Embedding], shape: Shape, width: int) -> EncodeResult:
    stack = quantized(stacked(results.items, width), shape.precision)
    if shape.tensor or not shape.array:
        tensor = torch.from_numpy(stack)
        if results.single:
            return tensor[0]
        return tensor if shape.tensor else list(tensor)
    return stack[0] if results.single else stack


def _features(one: Embedding) -> dict[str, Tensor]:
    """A text as sentence-transformers' modules leave it, without padding."""
    ids = torch.from_numpy(one["input_ids"])
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "token_embeddings": torch.from_numpy(one["token_embeddings"]),
        "sentence_embedding": torch.from_numpy(one["sentence_embedding"]),
    }
