"""LayerSpecs are the truth: they name what a model's forward pass plans, and nothing else."""

from typing import Any

import pytest
import torch

from longspan.engine.plan import plan
from longspan.families import attention_spec
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.longformer import attention
from longspan.inspect.dry_run import dry_run
from longspan.layout import Layout
from unit.families.tiny import some_ids
from unit.inspect.models import DOCUMENTS, layout_of, subjects

MODULES = (attention_spec, attention)
MANY = [range(0, 67, 4), [0], [], range(0, 131, 9)]
"""So many global tokens that their keys are projected: then plans are for the rows themselves."""


@pytest.mark.parametrize("name", subjects())
def test_calls_are_what_the_forward_pass_plans(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, layout = subjects()[name], layout_of(name)
    if name in ("longformer", "dilated", "biased longformer", "poolingformer"):
        layout = Layout.packed(DOCUMENTS, marked=[list(rows) for rows in MANY]).take(range(67))
    asked = set()

    def recorded(pattern: Any, queries: Layout, keys: Layout | None = None, **options: Any) -> Any:
        asked.add((pattern, queries, queries if keys is None else keys))
        return plan(pattern, queries, keys, **options)

    for module in MODULES:
        monkeypatch.setattr(module, "plan", recorded)
    with torch.no_grad():
        config.backbone().eval()(some_ids(layout.size), layout)
    made = {call for layer in config.attention(layout) for call in layer}
    assert asked == {(call.pattern, call.queries, call.keys) for call in made}


@pytest.mark.parametrize("name", subjects())
def test_calls_stand_in_the_order_in_which_they_are_computed(name: str) -> None:
    config, layout = subjects()[name], layout_of(name)
    calls = config.attention(layout)
    assert len(calls) == config.layers
    made = [call for layer in calls for call in layer]
    attentions = dry_run(config, layout).attentions
    if len(attentions) == len(made):  # global rows may be computed in two groups, few and many
        assert [keys for _, keys, *_ in attentions] == [call.keys.size for call in made]


def test_layers_that_draw_nothing_share_a_plan() -> None:
    config = BigBirdConfig(layers=3)
    assert len(set(config.attention(Layout.packed([1000])))) == 1
    drawn = BigBirdConfig(layers=3, random="tf")
    assert len(set(drawn.attention(Layout.packed([1000])))) == 3
