"""What models and patterns cost, against counting by hand."""

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from longspan.engine.plan import plan
from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.config import EncoderConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.inspect.advice import halving
from longspan.inspect.dry_run import dry_run
from longspan.inspect.report import CostReport, explain
from longspan.inspect.speed import measure, stated
from longspan.inspect.subject import Subject
from longspan.layout import Layout
from longspan.patterns import Full, Window
from unit.families.tiny import SIZES, some_ids
from unit.inspect.models import layout_of, subjects

LAYOUT = Layout.packed([60, 200], marked=[[], [0, 130]])
EVERY = pytest.mark.parametrize("name", subjects())


def report_on(config: EncoderConfig | str, length: int = 97) -> CostReport:
    return explain(config, length, gflops=(50, 25))


def as_json(report: CostReport) -> dict[str, Any]:
    """What a program reads that parses it strictly."""
    found: dict[str, Any] = json.loads(json.dumps(report.as_json(), allow_nan=False))
    return found


@EVERY
def test_pairs_are_those_that_the_patterns_allow(name: str) -> None:
    config = subjects()[name]
    report = report_on(config)
    for cost in report.attention:
        (call,) = (one for one in config.attention(report.layout)[cost.layers[0]] if one.name == cost.name)
        heads = [call.pattern.head(h).matrix(call.queries, call.keys) > 0 for h in range(config.heads)]
        assert cost.useful == np.count_nonzero(heads)
        assert cost.computed >= cost.useful
        assert cost.share == cost.useful / (config.heads * 97**2)
    assert sorted({layer for cost in report.attention for layer in cost.layers}) == list(range(config.layers))
    assert report.dense == config.layers * config.heads * 97**2


@EVERY
def test_a_dry_run_counts_the_parameters_and_leaves_nothing_behind(name: str) -> None:
    config, layout = subjects()[name], layout_of(name)
    work = dry_run(config, layout)
    model = config.backbone().eval()
    assert work.parameters == sum(parameter.numel() for parameter in model.parameters())
    with torch.no_grad():
        assert model(some_ids(layout.size), layout).isfinite().all()  # with the plans that the dry run made
    assert work.activation_bytes >= 4 * layout.size * 5 * config.width


@pytest.mark.parametrize("name", ["bert", "windowed", "mpnet", "bigbird", "shared", "stitched"])
def test_products_are_those_of_the_linear_layers(name: str) -> None:
    config = subjects()[name]
    rows, width, inner = 50, config.width, config.feed_forward
    marked = [range(0, rows, 16)] if name == "stitched" else None
    found = dry_run(config, Layout.packed([rows], marked=marked)).linear_flops
    assert found == config.layers * 2 * rows * (4 * width**2 + 2 * width * inner)


def test_global_rows_cost_their_projections_or_their_wide_queries() -> None:
    config = LongformerConfig(
        **SIZES, radius=4
    )  # 24 wide with 2 heads: 11 global tokens are few, 12 are many
    few, many = (explain(config, 90, marked=range(count), gflops=50) for count in (11, 12))
    assert few.attention[1].flops == 4 * 11 * 90 * 24 * 2  # each head's query is as wide as the model
    assert many.attention[1].flops == 4 * 12 * 90 * 24
    assert many.flops["linear"] - few.flops["linear"] > 3 * 2 * 2 * 70 * 24**2


@EVERY
def test_longer_documents_take_longer(name: str) -> None:
    reports = [report_on(subjects()[name], length) for length in (16, 64, 128, 256)]
    for kind in ("linear", "attention"):
        spent = [report.seconds[kind] for report in reports]
        assert spent == sorted(spent)
        assert spent[0] > 0
    for report in reports:
        assert report.total == pytest.approx(sum(report.seconds.values()))
    assert [report.memory["peak"] for report in reports] == sorted(
        report.memory["peak"] for report in reports
    )


def test_time_is_work_by_speed() -> None:
    report = report_on("longformer-base", 512)
    assert report.seconds["linear"] == pytest.approx(report.flops["linear"] / 50e9)
    assert report.seconds["attention"] == pytest.approx(report.flops["attention"] / 25e9)
    assert report.seconds["rest"] == 0
    faster = explain("longformer-base", 512, gflops=100)
    assert faster.total < report.total
    assert faster.dominates == "linear"


def test_full_attention_is_what_a_model_without_a_pattern_takes() -> None:
    sizes = {**SIZES, "positions": 2048}
    sparse, full = report_on(BertConfig(**sizes, radius=8), 1024), report_on(BertConfig(**sizes), 1024)
    assert sparse.full == pytest.approx(full.total)
    assert full.full == pytest.approx(full.total)
    assert sparse.total < full.total


def test_the_machine_is_measured_in_about_a_second() -> None:
    config = LongformerConfig(**SIZES | {"width": 48}, radius=16)
    speed = measure(config, config.attention(Layout.packed([256]))[0][0])
    assert speed.measured
    for rate in (speed.linear, speed.attention, speed.light, speed.activation):
        assert rate > 0
    report = explain(config, 256)
    assert 0 < report.total < 60
    assert "measured just now" in str(report)


def test_stated_speeds_are_checked() -> None:
    assert math.isinf(stated(3).light)
    for wrong in (0, -1, math.nan):
        with pytest.raises(InputError, match="`gflops` must be more than 0"):
            explain("bert-base", 64, gflops=wrong)
    with pytest.raises(InputError, match="`attention` must be more than 0, but is 0"):
        explain("bert-base", 64, gflops=(10, 0))
    with pytest.raises(InputError, match="`length` must be at least 1, but is 0"):
        explain("bert-base", 0, gflops=1)


def test_the_text_says_what_dominates() -> None:
    lines = str(report_on("longformer-base", 4096)).splitlines()
    assert lines[0] == "longformer-base: Longformer, 12 layers of width 768, 12 heads, 148.1 M parameters"
    assert lines[1] == "one document of 4,096 tokens with 1 global token"
    assert any(line.startswith("layers 0 to 11  window") for line in lines)
    assert "sees      a token in the middle: 514 tokens after layer 0, all after layer 1" in lines
    (bar,) = (line for line in lines if "linear layers      " in line)
    assert bar.count("█") > 16
    assert not any(line != line.rstrip() for line in lines)
    assert report_on("longformer-base", 64)._repr_html_().startswith("<pre>longformer-base")


def test_everything_is_json() -> None:
    for name in ("poolingformer-base", "etc-base", "default"):
        found = as_json(report_on(name, 300))
        assert found["model"] == name
        assert len(found["receptive_field"]) == found["layers"]
        assert found["pairs"]["useful"] <= found["pairs"]["computed"]
        assert found["memory_bytes"]["peak"] > found["memory_bytes"]["weights"] == 4 * found["parameters"]
        assert set(found["predicted_seconds"]) == {"linear", "attention", "rest", "total", "full_attention"}


@pytest.mark.parametrize(
    ("model", "length", "words"),
    [
        ("longformer-base", 256, "from about 1,024 on the pattern computes less than half"),
        ("longformer-base", 4096, "Linear layers dominate: a sparser pattern can save"),
        ("bert-base", 4096, "The model reads 512 tokens at once"),
        ("bert-base", 4096, "grows with the square of the length"),
        (LongformerConfig(**SIZES, radius=8), 301, "The model reads 300 tokens at once"),
    ],
)
def test_advice_is_given_where_there_is_any(model: EncoderConfig | str, length: int, words: str) -> None:
    assert any(words in sentence for sentence in explain(model, length, gflops=100).advice)


def test_a_window_that_never_sees_all_is_told_of_global_tokens() -> None:
    config = LongformerConfig(**SIZES, radius=4)
    assert any("global token" in one for one in explain(config, 200, marked=[], gflops=9).advice)
    assert not any("global token" in one for one in explain(config, 200, gflops=9).advice)


def test_where_a_pattern_begins_to_save() -> None:
    assert halving(Subject("x", LongformerConfig(**SIZES | {"positions": 4096}, radius=64))) == 256
    assert halving(Subject("x", BertConfig(**SIZES))) is None


def test_patterns_cost_what_their_plans_say() -> None:
    stack = [Window(3), Window(9), Window(3)]
    plans = [plan(pattern, LAYOUT, heads=2) for pattern in stack]
    report = explain(stack, LAYOUT, heads=2, head_size=32, gflops=50)
    assert report.useful == sum(p.pairs_allowed for p in plans)
    assert report.computed == sum(p.pairs_computed for p in plans)
    assert report.dense == sum(p.pairs_dense for p in plans) == 3 * 2 * (60**2 + 200**2)
    assert report.memory["plans"] == plans[0].arrays.nbytes + plans[1].arrays.nbytes  # equal layers share one
    assert report.seconds == {"linear": 0, "attention": pytest.approx(report.total), "rest": 0}
    assert report.total == pytest.approx(4 * 32 * report.computed / 50e9)
    assert [cost.layers for cost in report.attention] == [(0, 2), (1,)]
    assert 0 < report.attention[0].scratch_bytes <= 8 << 20
    assert report.advice == ()


def test_a_layer_of_a_stack_has_a_field_and_a_graph_of_its_own() -> None:
    report = explain([Window((1, 8), dilation=(4, 1)), Full()], LAYOUT, gflops=50)
    assert [cost.sees for cost in report.attention] == [17, 200]
    assert report.receptive_field.tokens.tolist() == [17, 200]
    assert [cost.graph.star for cost in report.attention if cost.graph] == [False, True]


def test_a_graph_is_told_of_models_whose_layers_are_one_attention() -> None:
    (cost,) = report_on("bigbird-base", 1024).attention
    assert cost.graph is not None
    assert cost.graph.diameter == 2
    assert [cost.graph for cost in report_on("longformer-base", 64).attention] == [None, None]


def test_the_text_on_patterns_says_what_there_is() -> None:
    report = explain([Window(3)] * 4 + [Full()], LAYOUT, heads=2, gflops=80)
    lines = str(report).splitlines()
    assert lines[0] == "Window(3), Full(): 5 layers, 2 heads of size 64"
    assert lines[1] == "260 tokens in 2 documents with 2 global tokens"
    assert lines[3].split() == [
        "sees",
        "useful",
        "pairs",
        "computed",
        "of",
        "full",
        "plan",
        "time",
        "pattern",
    ]
    assert lines[4].startswith("layers 0 to 3     7 ")
    assert lines[6].startswith("together        200 ")
    assert "graph     layer 4: a star, diameter 1, second eigenvalue 0.000" in lines
    assert any(line.endswith("predicted (80 GFLOP/s in attention; as given)") for line in lines)
    assert "linear" not in str(report)
    assert "together" not in str(explain(Window(3), 60, gflops=80))


def test_patterns_are_json_too() -> None:
    found = as_json(explain(Window(3), 60, heads=2))
    assert found["attention"][0]["pattern"] == "Window(3)"
    assert found["attention"][0]["words"].startswith("A token sees itself, 3 tokens")
    assert found["attention"][0]["graph"]["diameter"] == 20
    assert found["speed"]["linear_gflops"] is None
    assert found["speed"]["attention_gflops"] > 0
    assert found["parameters"] == found["memory_bytes"]["weights"] == 0


def test_what_only_patterns_take_is_refused_for_models() -> None:
    with pytest.raises(InputError, match="`head_size` must be given for patterns only"):
        explain("bert-base", 64, head_size=32)
    with pytest.raises(InputError, match="`head_size` must be at least 1, but is 0"):
        explain(Full(), 64, head_size=0)
    with pytest.raises(InputError, match="`patterns` must be patterns, one for each layer"):
        explain([Full(), "Full()"], 64)  # type: ignore[list-item]
    with pytest.raises(InputError, match="`length` must be at least 1, but is 0"):
        explain(Full(), Layout.packed([]))
    with pytest.raises(InputError, match="`marked` must be said by the layout itself"):
        explain(Full(), Layout.packed([9]), marked=[0])
