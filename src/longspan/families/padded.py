"""Models called as those of transformers are: padded batches, masks, labels; inside, documents are packed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from longspan.errors import InputError, bad, no_tensor
from longspan.layout import Layout

BY_TOKEN = ("ForMaskedLM", "ForTokenClassification", "ForQuestionAnswering")
"""Classes whose heads say something of each token."""


ChosenRows = bool | Iterable[int] | Tensor
"""Columns of a batch whose probabilities are wanted; True means all, False none."""


class ModelOutput(dict[str, "Tensor | tuple[Tensor, ...]"]):
    """What a model gives for a padded batch, by transformers' names: as attributes, keys, or in order.

    >>> output = ModelOutput(loss=torch.tensor(0.5), logits=torch.zeros(2, 3))
    >>> float(output.loss), output["logits"].shape, len(output.to_tuple())
    (0.5, torch.Size([2, 3]), 2)
    """

    @property
    def loss(self) -> Tensor:
        """The mean loss of the labels that were given."""
        return self._tensor("loss")

    @property
    def logits(self) -> Tensor:
        """Scores of each document (B, labels), or of each token (B, L, labels); 0 at padding."""
        return self._tensor("logits")

    @property
    def start_logits(self) -> Tensor:
        """Scores of each token as the start of the answer (B, L)."""
        return self._tensor("start_logits")

    @property
    def end_logits(self) -> Tensor:
        """Scores of each token as the end of the answer (B, L)."""
        return self._tensor("end_logits")

    @property
    def last_hidden_state(self) -> Tensor:
        """(B, L, C), 0 at padding."""
        return self._tensor("last_hidden_state")

    @property
    def sentence_embedding(self) -> Tensor:
        """The vector of each text (B, C)."""
        return self._tensor("sentence_embedding")

    @property
    def hidden_states(self) -> tuple[Tensor, ...]:
        """The embeddings and what each layer gives, (B, L, C) each; 0 at padding."""
        return self._of_layers("hidden_states", "output_hidden_states=True")

    @property
    def attentions(self) -> tuple[Tensor, ...]:
        """Probabilities of the chosen columns over the tokens of their text, (B, H, R, L) of each layer."""
        return self._of_layers("attentions", "output_attentions=[0], the columns to look at")

    def to_tuple(self) -> "tuple[Tensor | tuple[Tensor, ...], ...]":
        """Everything, in order."""
        return tuple(self.values())

    def _of_layers(self, name: str, wish: str) -> tuple[Tensor, ...]:
        found = self.get(name)
        if not isinstance(found, tuple):
            raise AttributeError(f"{name}: call the model with {wish}")
        return found

    def _tensor(self, name: str) -> Tensor:
        if name not in self:
            raise AttributeError(f"{name}: the output has {', '.join(self) or 'nothing'}")
        return cast(Tensor, self[name])


@dataclass(frozen=True, eq=False)
class PaddedBatch:
    """Texts of one length (B, L), some of whose columns are padding."""

    shape: tuple[int, int]
    rows: Tensor
    "(N,) the tokens, as rows of (B * L)."
    layout: Layout
    "The same as packed documents."

    @classmethod
    def of(cls, ids: Tensor, mask: Tensor | None, marks: Tensor | None = None) -> "PaddedBatch":
        """The tokens that a mask (B, L) leaves, one run in each text; `marks` (B, L) are global tokens."""
        if ids.dim() != 2:
            raise bad("input_ids", "of shape (texts, tokens)", tuple(ids.shape))
        for name, given in (("attention_mask", mask), ("global_attention_mask", marks)):
            if given is not None and given.shape != ids.shape:
                raise bad(name, f"of shape {tuple(ids.shape)} like `input_ids`", tuple(given.shape))
        seen = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask != 0
        counts = seen.sum(1)
        if not bool(counts.all()):
            raise bad("attention_mask", "1 for a token of each text at least", "0 for all of one")
        column, begin = torch.arange(ids.shape[1], device=ids.device), seen.int().argmax(1, keepdim=True)
        run = (column >= begin) & (column < begin + counts[:, None])
        if not torch.equal(run, seen):
            repair = "Tokens of a text stand together: padding comes before or behind them."
            raise bad("attention_mask", "one run of 1 in each text", "with gaps", repair)
        marked = None
        if marks is not None:
            chosen = (marks != 0) & seen
            marked = [
                (row.nonzero().squeeze(1) - first).tolist() for row, first in zip(chosen, begin, strict=True)
            ]
        layout = Layout.packed(counts.tolist(), marked=marked)
        return cls((ids.shape[0], ids.shape[1]), seen.flatten().nonzero().squeeze(1), layout)

    def pack(self, name: str, column: Tensor) -> Tensor:
        """(B, L) -> (N,)."""
        if column.shape != self.shape:
            raise bad(name, f"of shape {self.shape} like `input_ids`", tuple(column.shape))
        return column.flatten()[self.rows]

    def unpack(self, x: Tensor) -> Tensor:
        """(N, ...) -> (B, L, ...), 0 at padding."""
        if len(self.rows) == self.shape[0] * self.shape[1]:
            return x.view(*self.shape, *x.shape[1:])
        whole = x.new_zeros(self.shape[0] * self.shape[1], *x.shape[1:])
        return whole.index_copy(0, self.rows, x).view(*self.shape, *x.shape[1:])

    def place(self, columns: Tensor) -> list[int | None]:
        """Columns (B,) of the batch as places in their text; None outside of it."""
        counts = self.rows.new_tensor(self.layout.lengths)
        begin = self.rows[counts.cumsum(0) - counts] % self.shape[1]
        places = (columns.to(begin.device) - begin).tolist()
        lengths = self.layout.lengths.tolist()
        return [n if 0 <= n < length else None for n, length in zip(places, lengths, strict=True)]


@dataclass(frozen=True, eq=False)
class Targets:
    """What a loss is computed from."""

    outputs: Tensor
    "Of the head: (N, ...) or (documents, ...)."
    layout: Layout
    labels: Tensor
    "(N,) where the head says something of each token, else as they were given."
    spans: tuple[list[int | None], list[int | None]] | None
    "First and last tokens of the answers."
    choices: int
    "Documents that belong together."
    problem: str | None
    '"single", "multi" or "regression"; None: the labels tell.'


def tensor_of(name: str, value: Tensor) -> Tensor:
    """The value, if it is a tensor."""
    if not isinstance(value, Tensor):
        raise no_tensor(name, value)
    return value


PaddedLoss = Callable[[Targets], Tensor]


def no_loss(targets: Targets) -> Tensor:
    """What a model without a task does."""
    raise InputError(
        "`labels` must be None for a model without a task, but were given. Compute a loss by hand."
    )


def packed_labels(batch: PaddedBatch, labels: Tensor, architecture: str) -> Tensor:
    """Labels of a padded batch as the loss takes them."""
    tensor_of("labels", labels)
    return batch.pack("labels", labels) if architecture in BY_TOKEN else labels
