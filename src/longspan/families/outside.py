"""A plan in the midst of a graph: this file imports torch's compiler, so only what is compiled imports it."""

from typing import Any

import torch

REASON = "Plans are made outside of graphs: call the model with model.plan(layout) for its layout."


@torch.compiler.disable(reason=REASON)  # type: ignore[untyped-decorator]
def planned(model: Any, layouts: Any) -> Any:
    """model.plan(*layouts), between two graphs."""
    return model.plan(*layouts)
