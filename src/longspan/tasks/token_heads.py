"""What heads beside a model make of every token: weights of words, and vectors to compare one by one."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from longspan.errors import bad
from longspan.families.task_model import TaskModel
from longspan.nn.token_heads import Projection
from longspan.pipeline import inputs
from longspan.pipeline.documents import Document
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, Results, Step, by_document, hidden
from longspan.shapes import FloatArray, IntArray, Matrix
from longspan.tasks.encode import ENCODE, normalized, prompted

Options = Mapping[str, object]


def sparse(pipeline: Pipeline, texts: object, before: str, options: Options) -> Results[dict[int, float]]:
    """The weight of each token id of a text, the largest if it occurs often; special tokens have none."""
    head = _head(pipeline.model.token_heads.sparse, "encode_sparse", "sparse_linear.pt")

    def decode(ids: IntArray, values: FloatArray, rows: IntArray) -> dict[int, float]:
        weights: dict[int, float] = {}
        for index, value in zip(ids.tolist(), values[:, 0].tolist(), strict=True):
            if value > 0.0 and index not in pipeline.tokenizer.special_ids:
                weights[index] = max(value, weights.get(index, 0.0))
        return weights

    taken = _outputs(pipeline, texts, before, options, head)
    return Results([decode(*one) for one in taken.items], taken.single)


def vectors(pipeline: Pipeline, texts: object, before: str, options: Options) -> Results[Matrix]:
    """A vector of length 1 for each token of a text but the first, (n - 1, D)."""
    head = _head(pipeline.model.token_heads.vectors, "encode_multi_vector", "colbert_linear.pt")
    taken = _outputs(pipeline, texts, before, options, head)
    return Results([normalized(values[rows > 0]) for _, values, rows in taken.items], taken.single)


def _head(head: Projection | None, verb: str, file: str) -> Projection:
    if head is None:
        raise bad("model", f"one with {file} to call {verb}()", "without", "BGE-M3 and its kin have one.")
    return head


def _outputs(
    pipeline: Pipeline, texts: object, before: str, options: Options, head: Projection
) -> Results[tuple[IntArray, FloatArray, IntArray]]:
    """For each text the ids of its tokens, what the head makes of them, and their places in it."""

    def step(model: TaskModel, batch: Batch) -> Sequence[Tensor]:
        return by_document(head(hidden(model, batch)), batch)

    def joined(document: Document, outputs: Sequence[FloatArray]) -> tuple[IntArray, FloatArray, IntArray]:
        rows, values = document.joined(outputs)
        return document.encoding.ids[rows], values, rows

    made: Step = step
    taken = inputs.texts("texts", texts)
    encodings = prompted(pipeline.tokenizer, taken, before)
    read = pipeline.read(ENCODE, taken, made, options, encodings)
    return Results([joined(document, outputs) for document, outputs in read], taken.single)
