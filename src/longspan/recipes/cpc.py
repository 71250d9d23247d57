"""Contrastive prediction of sentences (Ainslie et al. 2020, section 2.5): whole sentences are masked, and the
states of their global tokens are to be told from those of other sentences.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.errors import bad, number
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from longspan.pipeline.packing import Batch
from longspan.recipes.masking import Key, Masked, uniform
from longspan.recipes.mlm import MaskedExamples, packed
from longspan.shapes import BoolArray, IntArray
from longspan.structure.structure import Structure
from longspan.tasks.fill import summed_loss
from longspan.tasks.losses import Loss

SHARE = 0.2
"""Of the contrastive loss; the rest is that of words."""
SENTENCES = 0.1
"""Of an example that are masked."""
LEAST = 4
"""Tokens of a sentence that is: shorter ones are alike."""


class BothStreams(Protocol):
    """States of tokens and of global tokens."""

    @property
    def long(self) -> Tensor: ...
    @property
    def globals(self) -> Tensor: ...
    @property
    def structure(self) -> Structure: ...


@runtime_checkable
class HasStreams(Protocol):
    """A backbone with a stream of global tokens."""

    def streams(self, ids: Tensor, layout: Layout) -> BothStreams: ...


class ContrastiveBatch(NamedTuple):
    """Masked examples, and the sentences that are hidden in them."""

    read: Batch
    sentences: Batch
    "Each alone, between the usual special tokens, with a single global token."
    documents: IntArray
    "(sentences,): in which example of the batch each is hidden,"
    units: IntArray
    "(sentences,): and behind which of its global tokens."

    def to(self, device: torch.device | str) -> "ContrastiveBatch":
        """The same on a device."""
        return self._replace(read=self.read.to(device), sentences=self.sentences.to(device))


@dataclass(frozen=True, eq=False)
class ContrastiveExamples:
    """Masked examples in which some sentences are hidden completely: a source of training data."""

    plain: MaskedExamples
    share: float = SENTENCES

    def __post_init__(self) -> None:
        number("share", self.share, 0.0, 1.0)
        units = self.plain.units
        if units is None or units.most == 0 or units.kind == "blocks":
            value = "without any" if units is None else units.kind
            raise bad("cpc", "used with a model whose global tokens stand for sentences", value)

    @property
    def lengths(self) -> IntArray:
        """The tokens of each example."""
        return self.plain.lengths

    @property
    def digest(self) -> list[float]:
        """A checksum of the texts and of what is made of them."""
        return [self.plain.digest, self.share]

    def batch(self, examples: IntArray, epoch: int) -> ContrastiveBatch:
        """Some examples end to end, and the sentences that are hidden in them."""
        numbers = [int(example) for example in examples]
        masked, parents, alone = [], [], []
        documents, units = [], []
        for place, example in enumerate(numbers):
            column = cast(IntArray, self.plain.parents(example))
            ids, hidden = self.plain.examples.ids(example), self.hidden(example, epoch, column)
            masked.append(self._hide(self.plain.masked(example, epoch), np.isin(column, hidden)))
            parents.append(column)
            alone += [ids[column == unit] for unit in hidden]
            documents += [place] * len(hidden)
            units += hidden.tolist()
        read = packed(numbers, masked, list(parents))
        return ContrastiveBatch(read, self._sentences(alone), np.array(documents, int), np.array(units, int))

    def hidden(self, example: int, epoch: int, parents: IntArray) -> IntArray:
        """The sentences of an example that are hidden, never all of them."""
        sizes = np.bincount(parents[parents >= 0])
        long_enough = np.flatnonzero(sizes >= LEAST)
        draws = uniform(Key(self.plain.seed, epoch, example, purpose=1), 1 + long_enough.size)
        most = min(long_enough.size, np.count_nonzero(sizes) - 1)
        count = min(most, max(1, int(self.share * sizes.size + draws[0])))
        return np.sort(long_enough[np.argsort(draws[1:], kind="stable")[: max(0, count)]])

    def _hide(self, seen: Masked, where: BoolArray) -> Masked:
        """Whole sentences masked; their words are not asked for."""
        ids = np.where(where, self.plain.vocabulary.mask, seen.ids)
        kept = ~where[seen.rows]
        return Masked(ids, seen.rows[kept], seen.targets[kept])

    def _sentences(self, alone: list[IntArray]) -> Batch:
        """Sentences as documents, each of one global token."""
        frame, nothing = self.plain.vocabulary.frame, [np.zeros(0, np.int64)]
        first, last = np.array(frame.first, np.int64), np.array(frame.last, np.int64)
        documents = [np.concatenate([first, ids, last]) for ids in alone]
        parents = [
            np.pad(np.zeros(len(ids), int), (len(first), len(last)), constant_values=-1) for ids in alone
        ]
        tags = {"parent": np.concatenate(parents or nothing)}
        layout = Layout.packed([len(ids) for ids in documents], tags=tags)
        whole = torch.from_numpy(np.concatenate(documents or nothing))
        return Batch(whole, layout, None, tuple(range(len(documents))))


def contrastive_loss(model: nn.Module, batch: ContrastiveBatch) -> Loss:
    """0.8 of the loss of words and 0.2 of that of sentences, as a sum over words."""
    assert isinstance(model, TaskModel)
    if not isinstance(model.backbone, HasStreams):
        raise bad("model", "one with a stream of global tokens", type(model.backbone).__name__)
    read = batch.read
    assert isinstance(read.labels, Tensor)
    streams = model.backbone.streams(read.ids, read.layout)
    rows = (read.labels != IGNORE_INDEX).nonzero().squeeze(1)
    total = (1 - SHARE) * summed_loss(model, read, streams.long[rows], read.labels[rows])
    if len(batch.units) > 1:  # one alone is told from none
        alone = model.backbone.streams(batch.sentences.ids, batch.sentences.layout)
        found = streams.globals[torch.from_numpy(_global_rows(batch, streams.structure))]
        total = total + SHARE * rows.numel() * nce(found, alone.globals)
    return Loss(total, float(rows.numel()))


def nce(found: Tensor, right: Tensor) -> Tensor:
    """How well each of M states is told from the others: mean of -log exp(f_i r_i) / sum_j exp(f_i r_j).

    Products are divided by the root of the width, as in attention.
    """
    scores = found @ right.t() * found.shape[1] ** -0.5
    return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


def _global_rows(batch: ContrastiveBatch, structure: Structure) -> IntArray:
    """The rows of the hidden sentences' global tokens in their stream."""
    counts = np.bincount(structure.globals.sites.document, minlength=structure.globals.documents)
    rows: IntArray = (np.cumsum(counts) - counts)[batch.documents] + batch.units
    return rows
