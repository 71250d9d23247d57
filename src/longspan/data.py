"""Data for other training loops: with this collator transformers' Trainer drives our models."""

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from longspan.errors import bad, missing
from longspan.families.padded import BY_TOKEN, ModelOutput, no_loss
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from longspan.pipeline.packing import Batch
from longspan.reader import Reader
from longspan.tasks.registry import TASKS, task_named

FIELDS = {"ForQuestionAnswering": ("question", "context"), "ForMultipleChoice": ("prompt", "choices")}
"""The inputs of an example, for models that do not read a single text."""
Example = Mapping[str, object]
Collator = Callable[[Sequence[Example]], dict[str, Tensor]]


def collator(reader: Reader, task: str | None = None, *, label: str = "label") -> Collator:
    """A function from examples to a padded batch, as our models and transformers' take it.

    An example is a dict: "text" ("question" and "context" to answer, "prompt" and "choices" to choose) and
    `label`, as Reader.prepare takes labels; without one there are no labels in the batch. A Trainer takes
    TrainerModel(reader) as its model, and needs remove_unused_columns=False. Global tokens are marked as the
    task has them, and nothing is cut unless the Reader's `overflow` is "truncate".

    >>> import longspan
    >>> from longspan.data import collator
    >>> collate = collator(longspan.load("default", task="classify"))  # doctest: +SKIP
    >>> collate([{"text": "A river", "label": 1}])["labels"]  # doctest: +SKIP
    tensor([1])
    """
    name = reader.task if task is None else task_named(task).name
    if name != reader.task:
        raise bad("task", f"{reader.task}, as the Reader has it", name, f"Load it with task={name!r}.")
    fields = FIELDS.get(reader.model.architecture, ("text",))

    def collate(examples: Sequence[Example]) -> dict[str, Tensor]:
        for field in fields:
            if any(field not in example for example in examples):
                raise missing(field, "in each example", f"They have {', '.join(examples[0])}.")
        labeled = all(label in example for example in examples)
        if labeled and TASKS[name].padded_loss is no_loss:
            known = ", ".join(task.name for task in TASKS.values() if task.padded_loss is not no_loss)
            raise bad("task", f"one of {known}, where examples have labels", name, "Use longspan.finetune.")
        choices = _choices(examples) if "choices" in fields else 1
        inputs = [[example[field] for example in examples] for field in fields]
        made = reader.examples(*inputs, labels=[example[label] for example in examples] if labeled else None)
        if made.pieces != choices * len(examples):
            raise bad("overflow", "'error' or 'truncate' here", "window", "A row of a batch is one text.")
        batch = made.batch(np.arange(len(examples)))
        by_token = reader.model.architecture in BY_TOKEN
        return padded(batch, reader.tokenizer.pad or 0, by_token=by_token, choices=choices)

    return collate


def _choices(examples: Sequence[Example]) -> int:
    """How many each example has."""
    counts = {len(cast(Sequence[object], example["choices"])) for example in examples}
    if len(counts) > 1:
        raise bad("choices", "equally many in all examples of a batch", sorted(counts))
    return counts.pop()


class TrainerModel(nn.Module):
    """A Reader's model as a Trainer takes it: it trains the very weights of the Reader, which saves them.

    A Trainer writes into the config of a model that has one, and ours never change.
    """

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self.model = reader.model

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        global_attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        start_positions: Tensor | None = None,
        end_positions: Tensor | None = None,
    ) -> ModelOutput:
        """The model's output, with a loss if there are labels."""
        output: ModelOutput = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            global_attention_mask=global_attention_mask,
            token_type_ids=token_type_ids,
            labels=labels,
            start_positions=start_positions,
            end_positions=end_positions,
        )
        return output

    def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs: object = None) -> None:
        """Keep only the layers' inputs for the backward pass."""
        self.model.gradient_checkpointing_enable()


def padded(batch: Batch, pad: int, *, by_token: bool, choices: int = 1) -> dict[str, Tensor]:
    """A packed batch as columns (B, L) by transformers' names, texts in the order they were given.

    With `choices` (B, choices, L). Labels are one for each token, or as they are.
    """
    lengths = batch.layout.lengths
    rows = [torch.arange(end - size, end) for size, end in zip(lengths, lengths.cumsum(), strict=True)]
    order = torch.from_numpy(np.argsort(batch.index))

    def column(values: Tensor, fill: int) -> Tensor:
        parts = [values[rows[i]] for i in order.tolist()]
        rectangle = torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=fill)
        return rectangle.unflatten(0, (-1, choices)) if choices > 1 else rectangle

    made = {
        "input_ids": column(batch.ids, pad),
        "attention_mask": column(torch.ones_like(batch.ids), 0),
        "global_attention_mask": column(torch.tensor(batch.layout.sites.marked, dtype=torch.long), 0),
    }
    if batch.token_types is not None:
        made["token_type_ids"] = column(batch.token_types, 0)
    if isinstance(batch.labels, Tensor):
        made["labels"] = column(batch.labels, IGNORE_INDEX) if by_token else batch.labels[order]
    elif isinstance(batch.labels, list):  # spans of answers; the first token stands for none
        spans = [(batch.labels[i] or [(0, 0)])[0] for i in order.tolist()]
        made["start_positions"], made["end_positions"] = torch.tensor(spans).unbind(1)
    elif isinstance(batch.labels, tuple):  # the right choices, in the order of their questions here
        made["labels"] = batch.labels[1][torch.from_numpy(np.argsort(batch.index[::choices]))]
    return made
