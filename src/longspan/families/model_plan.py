"""A layout as a model takes it inside a graph: every plan is made before, and all of it is tensors."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from longspan.engine.packed import PackedPlan, pack
from longspan.engine.plan import Plan
from longspan.layout import Layout
from longspan.nn.sites import Rows, tensor

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ModelPlan:
    """What `model.plan(layout)` returns: give it to the model in the place of the layout.

    It is a pytree of tensors, so torch.compile and torch.export take it as an input. It belongs to the model
    and to the mode, training or evaluation, that it was made for.
    """

    rows: Rows
    "What heads read of the layout."
    inputs: object
    "What the backbone reads of it: positions, and what each layer attends to."
    decoder: object = None
    "The same for a decoder, where there is one."

    def __repr__(self) -> str:
        return f"ModelPlan({len(self.rows.positions)} rows, {len(self.rows.first)} documents)"


def outside_of_graphs(plan: Callable[P, ModelPlan]) -> Callable[P, ModelPlan]:
    """The function, of which a graph that is being traced sees the result and nothing else."""

    @wraps(plan)
    def outside(*arguments: P.args, **options: P.kwargs) -> ModelPlan:
        with _disable_current_modes():
            return plan(*arguments, **options)

    return outside


def planned(model: nn.Module, *layouts: Layout) -> ModelPlan:
    """model.plan(*layouts), in the midst of a graph that is being traced."""
    from longspan.families import outside  # which imports torch's compiler

    made: ModelPlan = outside.planned(model, layouts)
    return made


def packed(tree: T, device: torch.device) -> T:
    """The tree with every plan as one tensor, every layout as its positions, and all on a device.

    The sizes of all tensors vary, which a compiler need not learn from a second layout.
    """
    from torch._dynamo import maybe_mark_dynamic  # takes a second to import, and only compilers need it

    known: dict[int, PackedPlan] = {}  # layers share plans, and a graph should know

    def leaf(value: object) -> object:
        if isinstance(value, Plan):
            if id(value) not in known:
                known[id(value)] = pack(value, device)
            return known[id(value)]
        if isinstance(value, Layout):
            return tensor(value.sites.position, device)
        return value.to(device) if isinstance(value, torch.Tensor) else value

    moved = pytree.tree_map(leaf, tree, is_leaf=lambda value: isinstance(value, Layout))
    for value in pytree.tree_leaves(moved):
        if isinstance(value, torch.Tensor):
            maybe_mark_dynamic(value, 0)
    return moved  # type: ignore[no-any-return]


# Compilers and exporters take a layout as a constant: what they make of it holds for an equal one.
pytree.register_constant(Layout)

FIELDS = ("rows", "inputs", "decoder")

pytree.register_pytree_node(
    ModelPlan,
    lambda plan: ([getattr(plan, name) for name in FIELDS], None),
    lambda leaves, _: ModelPlan(*leaves),
    serialized_type_name="longspan.ModelPlan",
    flatten_with_keys_fn=lambda plan: (
        [(pytree.GetAttrKey(name), getattr(plan, name)) for name in FIELDS],
        None,
    ),
)
