"""Masked language modeling: examples of a corpus whose masked words are to be found."""

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from longspan.corpus.examples import Examples, Frame
from longspan.corpus.spelling import Spelling
from longspan.errors import InputError, bad, whole
from longspan.families.config import Units
from longspan.layout import Layout
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX
from longspan.pipeline.packing import Batch
from longspan.recipes.masking import Key, Masked, Masking
from longspan.shapes import IntArray
from longspan.tasks.fill import FILL
from longspan.tasks.losses import Loss
from longspan.text.tokenizer import Tokenizer
from longspan.training.order import Cursor, Order
from longspan.training.ranks import Ranks
from longspan.training.source import on_device

EVALUATED = 1 << 32
"""The epoch whose masks an evaluation has: no run is so long, so it shows none that were trained on."""


@dataclass(frozen=True)
class Vocabulary:
    """What masking needs of a tokenizer."""

    spelling: Spelling
    mask: int
    frame: Frame

    @staticmethod
    def of(tokenizer: Tokenizer) -> "Vocabulary":
        """Read off a tokenizer, which must have a mask token."""
        if tokenizer.mask is None:
            raise InputError("The tokenizer has no mask token. Use one of a masked language model.")
        return Vocabulary(Spelling.of(tokenizer), tokenizer.mask, Frame.of(tokenizer))


@dataclass(frozen=True, eq=False)
class MaskedExamples:
    """Examples with masks that depend on seed, epoch and example alone: a source of training data."""

    examples: Examples
    vocabulary: Vocabulary
    masking: Masking
    seed: int = 0
    units: Units | None = None
    "What has a global token, in models with a stream of them; sentences are told by tags."

    def __post_init__(self) -> None:
        if self.masking.unit == "word" and not self.vocabulary.spelling.has_words:
            repair = "Its tokens do not tell where words begin."
            raise bad("masking", "token for this tokenizer", self.masking.unit, repair)
        if not len(self.examples.documents):
            raise bad("documents", "at least one document", "empty")

    @property
    def lengths(self) -> IntArray:
        """The tokens of each example."""
        return self.examples.lengths

    @property
    def digest(self) -> int:
        """A checksum of the texts and of what is made of them."""
        plain = self.examples
        how = plain.corpus.fingerprint, plain.frame, plain.length, plain.packing, self.masking, self.seed
        texts = zlib.crc32(plain.corpus.hashes[plain.documents].tobytes())
        return zlib.crc32(repr((*how, self.units)).encode(), texts)

    def masked(self, example: int, epoch: int) -> Masked:
        """An example as it is seen in an epoch."""
        ids, words = self.examples.ids(example), self.vocabulary
        return self.masking.apply(ids, words.spelling, words.mask, Key(self.seed, epoch, example))

    def batch(self, examples: IntArray, epoch: int) -> Batch:
        """Some examples end to end, labeled with the words behind their masks."""
        numbers = [int(example) for example in examples]
        return packed(
            numbers,
            [self.masked(number, epoch) for number in numbers],
            [self.parents(number) for number in numbers],
        )

    def parents(self, example: int) -> IntArray | None:
        """(n,): the sentence that each token belongs to, -1 for special ones; None if nobody asks."""
        if self.units is None or self.units.most == 0 or self.units.kind == "blocks":
            return None
        column = self.vocabulary.spelling.sentences(self.examples.ids(example))
        count = int(column.max(initial=-1)) + 1
        room = self.units.most
        if count > room:  # neighbours share a global token
            column = np.where(column < 0, -1, column * room // count)
        return column


def packed(numbers: list[int], masked: list[Masked], parents: list[IntArray | None]) -> Batch:
    """Masked examples as a batch."""
    ids = np.concatenate([one.ids for one in masked])
    labels = np.full(len(ids), IGNORE_INDEX)
    starts = np.cumsum([0, *(len(one.ids) for one in masked)])
    rows = np.concatenate([one.rows + start for one, start in zip(masked, starts, strict=False)])
    labels[rows] = np.concatenate([one.targets for one in masked])
    known = [column for column in parents if column is not None]
    tags = {"parent": np.concatenate(known)} if known else None
    layout = Layout.packed([len(one.ids) for one in masked], tags=tags)
    return Batch(torch.from_numpy(ids), layout, None, tuple(numbers), torch.from_numpy(labels))


def masked_loss(model: nn.Module, batch: Batch) -> Loss:
    """The summed cross-entropy of the words behind masks, and how many these are."""
    return FILL.loss_sum(model, batch)


def evaluate_masked(
    data: MaskedExamples, *, most_tokens: int | None = None, micro_tokens: int = 8192
) -> Callable[[nn.Module], dict[str, float]]:
    """What measures a model: loss (nats) and bits for each masked token, and bits for each character that
    masked tokens cover.

    Masks are the same each time, and other ones than in training. With `most_tokens` only examples of so many
    tokens are read, at even distances.
    """
    chosen = _spaced(data.lengths, most_tokens)
    order = Order(data.lengths[chosen], batch_size=len(chosen), micro_tokens=micro_tokens)
    batches = [chosen[batch] for batch in order.step(Cursor(0, 0)).batches]
    characters = torch.from_numpy(data.vocabulary.spelling.characters)

    def run(model: nn.Module) -> dict[str, float]:
        group, sums = Ranks.of(model), np.zeros(3)
        with torch.no_grad():
            for number, counts in group.share(len(batches)):
                batch = data.batch(batches[number], EVALUATED)
                loss = masked_loss(model, on_device(batch, model))
                assert isinstance(batch.labels, torch.Tensor)
                covered = characters[batch.labels[batch.labels != IGNORE_INDEX]].sum()
                if counts:
                    sums += [float(loss.total), loss.weight, float(covered)]
        nats, tokens, letters = group.sum(sums.tolist())
        bits = nats / math.log(2)
        return {
            "loss": nats / tokens if tokens else math.nan,
            "bits_per_token": bits / tokens if tokens else math.nan,
            "bits_per_character": bits / letters if letters else math.nan,
        }

    return run


def _spaced(lengths: IntArray, most: int | None) -> IntArray:
    """Examples at even distances that together have about so many tokens, at least one."""
    if most is None or lengths.sum() <= whole("most_tokens", most, 1):
        return np.arange(len(lengths))
    count = max(1, int(len(lengths) * most / lengths.sum()))
    return np.unique(np.linspace(0, len(lengths) - 1, count).astype(np.int64))
