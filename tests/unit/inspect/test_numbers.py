"""Pairs, fields and bytes stay what they were when numbers.json was recorded."""

import json
from pathlib import Path
from typing import Any

import pytest

from longspan.cli.expression import pattern
from longspan.families.registry import presets
from longspan.inspect.report import explain
from longspan.layout import Layout

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("numbers.json").read_text())
LAYOUT = Layout.packed([60, 200], marked=[[], [0, 130]])


def test_every_preset_is_recorded() -> None:
    assert set(RECORDED["models"]) == set(presets())


@pytest.mark.parametrize("name", RECORDED["models"])
def test_a_model_costs_and_sees_what_it_did(name: str) -> None:
    report, recorded = explain(name, 1000, gflops=100), RECORDED["models"][name]
    costs = [
        [c.name, len(c.layers), c.useful, c.computed, c.plan_bytes, c.scratch_bytes, c.flops]
        for c in report.attention
    ]
    assert costs == recorded["attention"]
    assert report.receptive_field.tokens.tolist() == recorded["receptive_field"]
    for field in ("parameters", "linear_flops", "activation_bytes"):
        assert getattr(report.work, field) == recorded[field]


@pytest.mark.parametrize("recorded", RECORDED["stacks"], ids=lambda recorded: ", ".join(recorded["patterns"]))
def test_a_stack_costs_and_sees_what_it_did(recorded: dict[str, Any]) -> None:
    layers = [pattern(text) for text in recorded["patterns"]]
    report = explain(layers, LAYOUT, heads=recorded["heads"], head_size=32, gflops=100)
    assert report.receptive_field.tokens[-1] == recorded["receptive_field"]
    assert report.memory["plans"] == recorded["plan_bytes"]
    by_layer = {layer: cost for cost in report.attention for layer in cost.layers}
    for number, (sees, useful, computed, dense, plan, scratch, *graph) in enumerate(recorded["layers"]):
        cost = by_layer[number]
        assert (cost.sees, cost.useful, cost.computed) == (sees, useful, computed)
        assert (cost.plan_bytes, cost.scratch_bytes) == (plan, scratch)
        assert cost.share == useful / dense
        assert cost.graph is not None
        assert [cost.graph.star, cost.graph.diameter] == graph[:2]
        assert cost.graph.second_eigenvalue == pytest.approx(graph[2], abs=1e-8)
