"""A plan in the midst of a graph: this file imports torch's compiler, so only what is compiled imports it."""

from typing import Protocol

import torch

from longspan.families.model_plan import ModelPlan
from longspan.layout import Layout

REASON = "Plans are made outside of graphs: call the model with model.plan(layout) for its layout."


class Plans(Protocol):
    """A model or backbone."""

    def plan(self, layout: Layout, *texts: Layout) -> ModelPlan: ...


@torch.compiler.disable(reason=REASON)  # type: ignore[untyped-decorator]
def planned(model: Plans, *layouts: Layout) -> ModelPlan:
    """The plan of a model, made between two graphs."""
    return model.plan(*layouts)
