"""What a run leaves as it is: all but new positions, and weights that its loss does not depend on."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from longspan.errors import bad
from longspan.families.task_model import TaskModel
from longspan.training.source import LossFunction, T
from longspan.training.step import drawing

TABLE = "embeddings.positions"


class Behind(nn.Module):
    """Rows behind others, which are never trained."""

    first: Tensor

    def __init__(self, first: Tensor) -> None:
        super().__init__()
        self.register_buffer("first", first)

    def forward(self, rows: Tensor) -> Tensor:
        """The whole table."""
        return torch.cat([self.first, rows])

    def right_inverse(self, table: Tensor) -> Tensor:
        """What of a table is trained."""
        return table[len(self.first) :].clone()


def new_positions(model: TaskModel) -> range:
    """The positions that `lengthen` has added: those behind the first copy; all, if the table has none."""
    rows = table_of(model).weight.detach()[model.config.position_offset :]
    for begin in (rows == rows[0]).all(1).nonzero().flatten().tolist()[1:]:
        if torch.equal(rows[begin:], rows[:-begin]):
            return range(begin, len(rows))
    return range(len(rows))


@contextmanager
def only_new_positions(model: TaskModel) -> Iterator[None]:
    """Inside the block only new positions are trained (Longformer, section 5, the frozen variant)."""
    table, new = table_of(model), new_positions(model)
    required = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    model.requires_grad_(False)
    table.weight.requires_grad_(True)
    before = table.weight.detach()[: model.config.position_offset + new.start].clone()
    parametrize.register_parametrization(table, "weight", Behind(before))
    try:
        yield
    finally:
        parametrize.remove_parametrizations(table, "weight")
        for parameter, was in required:
            parameter.requires_grad_(was)


def table_of(model: TaskModel) -> nn.Embedding:
    """The table of positions."""
    for name, part in model.named_modules():
        if name.endswith(TABLE) and isinstance(part, nn.Embedding):
            return part
    repair = f"{type(model.backbone).__name__} computes its positions."
    raise bad("frozen", "used with a model that has a table of positions", True, repair)


def unreached(model: nn.Module, batch: T, loss: LossFunction[T]) -> list[nn.Parameter]:
    """The parameters that the loss does not depend on, such as projections of global tokens without any.

    Their gradients are 0. So are those of weights behind others that are 0 now and will not stay so, which is
    why all that is 0 has other values meanwhile.
    """
    zeros = [parameter.data for parameter in model.parameters() if not parameter.any()]
    try:
        with drawing(0):
            for zero in zeros:
                zero.normal_(std=0.02)
            loss(model, batch).total.backward()
        return [p for p in model.parameters() if p.requires_grad and (p.grad is None or not p.grad.any())]
    finally:
        for zero in zeros:
            zero.zero_()
        model.zero_grad()
