"""Batches as a model takes them: those that a verb reads, with labels if there are any."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from longspan.pipeline.documents import prepare
from longspan.pipeline.labels import Labeling, checked
from longspan.pipeline.packing import Batch
from longspan.pipeline.run import Pipeline, batched
from longspan.tasks.base import Task


def batches(
    task: Task,
    pipeline: Pipeline,
    inputs: Sequence[object],
    labels: Iterable[object] | None,
    known: tuple[Sequence[str], str | None, str],
    options: Mapping[str, object],
) -> list[Batch]:
    """The batches of a task's inputs; `known` are the classes, the kind of problem and the prompt."""
    model, settings = pipeline.model, pipeline.options.but(**options)
    classes, problem, prompt = known
    taken = task.inputs(*inputs)
    many, read = checked(labels, taken), task.expand(taken)
    encodings = task.encode(pipeline.tokenizer, read, prompt)
    documents = prepare(model, task, read.names, encodings, settings)
    if many is None:
        return batched(model, documents, settings)
    given = Labeling(many, taken, documents, classes, problem, pipeline.tokenizer, model, settings)
    targets = task.targets(given)
    together = None
    if read is not taken:  # what is compared stands under one name
        groups = enumerate(groupby(read.names))
        together = [number for number, (_, alike) in groups for _ in alike]
    more = [task.label_tokens(target) for target in targets]
    packed = batched(model, documents, settings, more=more, together=together)
    return [task.attach(batch, [targets[i] for i in batch.index], given) for batch in packed]
