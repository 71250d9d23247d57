"""Poolingformers on disk, in readers, in int8, and made from models with one level."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import longspan
from helpers import READING
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.cli import main
from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.mpnet.model import MPNetConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.lengthening.lengthen import lengthen, lengthened
from longspan.nn.quantized import QuantizedLinear, quantize
from longspan.reader import Reader
from longspan.tasks.registry import build
from unit.families.tiny import some_ids, unsettle
from unit.tasks.tiny import CORPUS, VOCABULARY, tokenizer

SIZES: dict[str, Any] = {"vocab_size": 53, "width": 21, "layers": 2, "heads": 3, "feed_forward": 11}
SECOND: dict[str, Any] = {"wide_radius": 13, "kernel": 5, "stride": 3, "two_level": (0, 1)}
LENGTHS = [37, 5]
LAYOUT = Layout.packed(LENGTHS, marked=[[0, 9], []])
IDS = some_ids(sum(LENGTHS))


def model_of(task: str = "encode", **options: Any) -> TaskModel:
    torch.manual_seed(0)
    config = PoolingformerConfig(**SIZES | {"positions": 40, "radius": 3} | SECOND | options)
    model = build(config, task, labels=3).eval()
    unsettle(model)
    return model


def source_of(config: Any, task: str = "encode") -> TaskModel:
    torch.manual_seed(0)
    model = build(config, task, labels=3).eval()
    unsettle(model)
    return model


@torch.no_grad()
@pytest.mark.parametrize("task", READING)
def test_what_is_saved_is_loaded_with_the_same_bits(task: str, tmp_path: Path) -> None:
    model = model_of(task)
    save_model(model, tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text())
    assert raw["model_type"] == "longspan-poolingformer"
    loaded = load_model(tmp_path)
    assert not loaded.report
    assert loaded.model.config == model.config
    stored = loaded.model.state_dict()
    assert all(torch.equal(stored[name], tensor) for name, tensor in model.state_dict().items())
    # A mapped file does not lie where torch would lay it, and products depend on that in their last bit.
    torch.testing.assert_close(loaded.model(IDS, LAYOUT), model(IDS, LAYOUT))


@torch.no_grad()
@pytest.mark.parametrize(
    "options",
    [
        {"pooling": "mean"},
        {"delta_by_head": True, "delta_shared": True, "delta_from": "mean"},
        {"mix": True, "share_weights": True, "residual": False},
        {"two_level": (1,), "buckets": 32, "token_types": 0},
    ],
    ids=str,
)
def test_every_option_is_kept_on_disk(options: dict[str, Any], tmp_path: Path) -> None:
    model = model_of(**options)
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert not loaded.report
    assert loaded.model.config == model.config
    assert torch.equal(loaded.model(IDS, LAYOUT), model(IDS, LAYOUT))


def test_a_second_level_that_the_file_lacks_is_an_error(tmp_path: Path) -> None:
    save_model(model_of(two_level=(0,)), tmp_path)
    config = tmp_path / "config.json"
    raw = json.loads(config.read_text())
    raw["encoder"]["two_level"] = [0, 1]
    config.write_text(json.dumps(raw))
    with pytest.raises(longspan.LongspanError, match=r"layers.1.attention.second.query.weight"):
        load_model(tmp_path)


def reader_of(task: str) -> Reader:
    sizes = SIZES | {"vocab_size": VOCABULARY, "positions": 64, "init_std": 0.3, "radius": 4}
    torch.manual_seed(5)
    model = build(PoolingformerConfig(**sizes | SECOND), task, labels=3).eval()
    return Reader(model, tokenizer("longformer"))


def test_a_reader_marks_global_tokens_as_for_a_longformer(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Layout] = []
    forward = TaskModel.forward

    def spying(self: TaskModel, ids: Any, layout: Layout, types: Any = None) -> Any:
        seen.append(layout)
        return forward(self, ids, layout, types)

    monkeypatch.setattr(TaskModel, "forward", spying)
    reader_of("classify").classify(CORPUS[0])
    assert seen[-1].marked_rows.tolist() == [0]
    found = reader_of("answer").answer("Where does Anna live?", CORPUS[1])
    assert CORPUS[1][found["start"] : found["end"]] == found["answer"]
    question = seen[-1].marked_rows
    assert question.size > 1
    assert question.tolist() == list(range(question[0], question[0] + question.size))


def test_a_reader_reads_documents_alike_alone_and_together() -> None:
    reader = reader_of("encode")
    together = reader.encode(list(CORPUS))
    for text, vector in zip(CORPUS, together, strict=True):
        np.testing.assert_allclose(reader.encode([text])[0], vector, rtol=0, atol=2e-6)


@torch.no_grad()
@pytest.mark.parametrize("options", [{}, {"mix": True, "share_weights": True}], ids=["own", "lite"])
def test_int8_reads_almost_the_same(options: dict[str, Any]) -> None:
    model = model_of(**options)
    before = model(IDS, LAYOUT)
    quantize(model)
    second: Any = model.get_submodule("backbone.layers.0.attention.second")
    assert bool(options) or isinstance(second.query, QuantizedLinear)
    assert torch.cosine_similarity(model(IDS, LAYOUT), before).min() > 0.999


SOURCES = {
    "bert": BertConfig(**SIZES, positions=29),
    "roberta": BertConfig(**SIZES, positions=29, position_offset=2, pad_id=1, token_types=1),
    "mpnet": MPNetConfig(**SIZES, positions=29),
}


@torch.no_grad()
@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("task", ["encode", "classify", "answer"])
def test_a_lengthened_model_is_the_longformer_it_would_have_been(name: str, task: str) -> None:
    source = source_of(SOURCES[name], task)
    near = lengthened(source, 40, radius=6)
    both = lengthened(source, 40, pattern="poolingformer", radius=6, **SECOND)
    assert torch.equal(both(IDS, LAYOUT), near(IDS, LAYOUT))
    assert torch.equal(both.backbone(IDS, LAYOUT), near.backbone(IDS, LAYOUT))


def test_lengthening_writes_a_model_and_says_what_was_done(tmp_path: Path) -> None:
    save_model(source_of(SOURCES["bert"], "classify"), tmp_path / "short")
    report = lengthen(tmp_path / "short", 40, out=tmp_path / "long", pattern="poolingformer", **SECOND)
    assert (report.pattern, report.equal_up_to, report.why_not) == (
        "poolingformer",
        15,
        "a second level of attention",
    )
    assert (
        report.notes["second level"] == "layers 0, 1: radius 13, ldconv of 5 tokens every 3; starts at zero"
    )
    assert f"second level  {report.notes['second level']}" in str(report)
    assert (
        f"| second level | {report.notes['second level']} |" in (tmp_path / "long" / "README.md").read_text()
    )
    loaded = load_model(tmp_path / "long").model
    assert isinstance(loaded.config, PoolingformerConfig)
    assert loaded.config.radius == (14, 14)


@torch.no_grad()
def test_a_longformer_gets_a_second_level_and_keeps_all_it_has_learnt(tmp_path: Path) -> None:
    source = source_of(LongformerConfig(**SIZES, positions=40, radius=(3, 5)), "answer")
    save_model(source, tmp_path / "one")
    report = lengthen(tmp_path / "one", 40, out=tmp_path / "two", pattern="poolingformer", **SECOND)
    assert report.equal_up_to == 40
    assert not any("global" in part for part in report.copied)
    loaded = load_model(tmp_path / "two").model
    assert isinstance(loaded.config, PoolingformerConfig)
    assert loaded.config.radius == (3, 5)
    assert torch.equal(loaded(IDS, LAYOUT), source(IDS, LAYOUT))


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"share_weights": True}, "`share_weights` must be False here"),
        ({"mix": True, "share_weights": True}, "`share_weights` must be False here"),
        ({"residual": False}, "`residual` must be True here"),
        ({"vocab_size": 3}, "There is no option `vocab_size`"),
    ],
)
def test_what_cannot_start_equal_is_refused(second: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        lengthened(source_of(SOURCES["bert"]), 40, pattern="poolingformer", **second)
    assert str(caught.value).startswith(message)


def test_options_that_do_not_belong_are_errors() -> None:
    longformer = source_of(LongformerConfig(**SIZES, positions=40, radius=3))
    with pytest.raises(InputError, match="`radius` must be left out for a Longformer"):
        lengthened(longformer, 40, pattern="poolingformer", radius=3)
    with pytest.raises(InputError, match="`wide_radius` must be given for poolingformer only"):
        lengthened(source_of(SOURCES["bert"]), 40, wide_radius=9)
    with pytest.raises(InputError, match="`source` must be a short model"):
        lengthened(source_of(BigBirdConfig(**SIZES, positions=40)), 40, pattern="poolingformer")


def test_the_command_makes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_model(source_of(SOURCES["roberta"]), tmp_path / "short")
    command = ["lengthen", str(tmp_path / "short"), "--to", "40", "--pattern", "poolingformer", "--json"]
    command += ["--set", "two_level=0", "--set", "wide_radius=11", "--set", "pooling=mean"]
    assert main([*command, "--out", str(tmp_path / "long")]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert notes["second level"].startswith("layers 0: radius 11, mean of 5")
    config = load_model(tmp_path / "long").model.config
    assert isinstance(config, PoolingformerConfig)
    assert (config.two_level, config.wide_radius, config.pooling) == ((0,), 11, "mean")
