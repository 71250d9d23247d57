"""Probabilities of chosen rows, layer by layer, as a model computes them."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from longspan.engine.call import AnyPlan, attention_weights
from longspan.engine.watch import watched
from longspan.errors import InputError, bad, whole
from longspan.families.backbone import Backbone
from longspan.families.padded import ChosenRows, PaddedBatch
from longspan.nn.layers import stacks

ALL_UP_TO = 1024
"""Columns of a batch whose rows are all shown if output_attentions is True."""


class Attentions(list[Tensor]):
    """(B, H, R, L) for each layer so far: what the chosen columns of each text give to its tokens."""

    def __init__(self, batch: PaddedBatch, columns: list[int]) -> None:
        super().__init__()
        self.batch = batch
        texts, length = batch.shape
        packed = torch.full((texts * length,), -1)
        packed[batch.rows] = torch.arange(len(batch.rows))
        chosen = packed.view(texts, length)[:, columns].flatten()  # (B * R,)
        self.there = (chosen >= 0).nonzero().squeeze(1)
        "Which of B * R are no padding."
        self.rows = chosen[self.there]
        self.chosen = len(columns)

    def __call__(self, q: Tensor, k: Tensor, plan: AnyPlan, *, partial: bool, **how: Any) -> None:
        size = len(self.batch.rows)
        if len(k) != size or partial:
            raise InputError("`output_attentions` must be False for a model whose keys are not its tokens.")
        if len(q) != size:  # rows of a kind: those that have no probabilities here are refused in the end
            return
        texts, length = self.batch.shape
        found = attention_weights(q, k, plan, self.rows, **how)
        heads = found.keys.shape[1]
        dense = found.probabilities.new_zeros(texts * self.chosen, heads, length + 1)
        columns = self.batch.rows[found.keys.clamp(min=0)] % length
        columns = columns.masked_fill(found.keys < 0, length)  # beyond the last
        dense[self.there] = dense[self.there].scatter_add(2, columns, found.probabilities)
        by_text = dense[..., :length].unflatten(0, (texts, self.chosen))  # (B * R, H, L) -> (B, R, H, L)
        if not bool(found.probabilities.detach().sum(-1).gt(0.5).all()):
            raise bad(
                "output_attentions",
                "columns of tokens that attend as others do",
                "some that do not",
                "Global tokens have projections of their own, and are not shown.",
            )
        self.append(by_text.transpose(1, 2))


@contextmanager
def shown(backbone: Backbone, batch: PaddedBatch, wanted: ChosenRows) -> Iterator[list[Tensor]]:
    """The probabilities of the wanted columns in each layer, while the block runs; none if False."""
    if wanted is False:
        yield []
        return
    if len(stacks(backbone)) > 1:
        raise InputError("`output_attentions` must be False for a model that writes.")
    found = Attentions(batch, _columns(wanted, batch.shape[1]))
    with watched(found):
        yield found
    if len(found) != len(stacks(backbone)[0]):
        raise InputError("`output_attentions` must be False for a model whose layers attend in parts.")


def _columns(wanted: ChosenRows, length: int) -> list[int]:
    if wanted is True:
        if length > ALL_UP_TO:
            repair = "Name columns, such as output_attentions=[0]."
            most = f"True for up to {ALL_UP_TO} columns"
            raise bad("output_attentions", most, f"True for {length}", repair)
        return list(range(length))
    if not isinstance(wanted, Iterable) or isinstance(wanted, str):
        raise bad("output_attentions", "True, False or columns of input_ids", wanted)
    listed = wanted.tolist() if isinstance(wanted, Tensor) else list(wanted)
    columns = [whole("output_attentions", column, -length, most=length - 1) for column in listed]
    return [column % length for column in columns]
