"""BERT and RoBERTa as ETC: equal while the global stream is empty, ready for global tokens and structure."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import longspan
from helpers import READING
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.cli import main
from longspan.errors import CheckpointError, InputError
from longspan.families.bert.model import BertConfig
from longspan.families.etc.lengthen import without_global_tokens
from longspan.families.etc.model import Etc, EtcConfig
from longspan.families.mpnet.model import MPNetConfig
from longspan.families.registry import lengthenings
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.lengthening.lengthen import lengthen, lengthened
from longspan.lengthening.self_check import difference
from longspan.tasks.registry import build

SMALL: dict[str, Any] = {"vocab_size": 41, "width": 12, "layers": 2, "heads": 3, "feed_forward": 20}
SHORT = 61
DEFAULTS: dict[str, Any] = {"to": 100, "pattern": "etc"}
KINDS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {
        "head_style": "roberta",
        "position_offset": 2,
        "pad_id": 1,
        "token_types": 1,
        "norm_eps": 1e-5,
    },
}


def tiny(task: str = "encode", **changes: Any) -> TaskModel:
    torch.manual_seed(0)
    model = build(BertConfig(**SMALL | {"positions": SHORT, "init_std": 0.5} | changes), task).eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data.normal_(std=0.5)
    return model


def etc(model: TaskModel) -> Etc:
    assert isinstance(model.backbone, Etc)
    return model.backbone


@pytest.mark.parametrize("task", READING)
@pytest.mark.parametrize("kind", KINDS)
def test_without_global_tokens_the_new_model_is_the_old_one_within_the_window(kind: str, task: str) -> None:
    source = tiny(task, **KINDS[kind])
    target = lengthened(source, 200, pattern="etc", radius=16)
    config = target.config
    assert isinstance(config, EtcConfig)
    assert (config.absolute, config.block, config.radius, config.positions) == (True, 0, 16, 200)
    assert difference(source, target, 17) < 1e-6
    ids = torch.arange(40) % 41
    here, there = (model.backbone(ids, Layout.packed([40])) for model in (source, target))
    assert (here - there).abs().max() > 1e-2  # beyond the window they are not the same


@pytest.mark.parametrize("kind", KINDS)
def test_positions_are_kept_and_stretched_for_both_streams(kind: str) -> None:
    source = tiny(**KINDS[kind])
    offset, before = (
        source.config.position_offset,
        source.get_parameter("backbone.embeddings.positions.weight"),
    )
    target = lengthened(source, 200, pattern="etc", period=50)
    after = target.get_parameter("backbone.embeddings.positions.weight")
    assert torch.equal(after[:offset], before[:offset])
    assert torch.equal(after[offset:], before[offset:][torch.arange(200) % 50])
    again = target.get_parameter("backbone.embeddings.global_positions.weight")
    assert torch.equal(again, after)
    assert again.data_ptr() != after.data_ptr()


def test_what_global_tokens_have_of_their_own_are_copies_and_labels_say_nothing() -> None:
    body = etc(lengthened(tiny(), 100, pattern="etc"))
    found = dict(body.named_parameters())
    own = [name for name in found if "global_" in name and "_relative." not in name]
    assert len(own) == 3 + 2 * 4  # positions and norm of the embeddings; output and norm of each layer
    for name in own:
        assert torch.equal(found[name], found[name.replace("global_", "")])
        assert found[name].data_ptr() != found[name.replace("global_", "")].data_ptr()
    labels = [parameter for name, parameter in found.items() if "_relative." in name]
    assert len(labels) == 2 * 4
    assert not any(parameter.any() for parameter in labels)


def test_training_moves_labels_and_global_tokens_from_where_they_begin() -> None:
    model = lengthened(tiny(), 100, pattern="etc", radius=5, block=7).train()
    model(torch.arange(40), Layout.packed([40])).square().sum().backward()
    still = [name for name, parameter in model.named_parameters() if not parameter.grad.any()]  # type: ignore[union-attr]
    # What the last layer makes of global tokens nobody reads.
    assert all(name.startswith("backbone.layers.1.") and "global" in name for name in still)


@pytest.mark.parametrize(("kind", "word"), [("bert", 1), ("roberta", 0)])
def test_global_tokens_are_there_if_asked_for_and_equality_is_told_without_them(kind: str, word: int) -> None:
    source = tiny(**KINDS[kind])
    target = lengthened(source, 200, pattern="etc", radius=16, block=5)
    ids = torch.arange(40) % 41
    found = etc(target).streams(ids, Layout.packed([22, 18]))
    assert found.structure.words.tolist() == [word] * (5 + 4)
    assert difference(source, target, 17) > 1e-2
    with without_global_tokens(target):
        assert difference(source, target, 17) < 1e-6
        assert len(etc(target).streams(ids, Layout.packed([40])).globals) == 0
    assert target.config.block == 5  # type: ignore[attr-defined]


def test_the_command_writes_a_model_that_says_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_model(tiny("classify"), tmp_path / "short")
    given = ["lengthen", str(tmp_path / "short"), "--to", "99", "--out", str(tmp_path / "long")]
    assert main([*given, "--pattern", "etc", "--radius", "8", "--block", "9", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["pattern"], told["radius"], told["block"]) == ("etc", [8, 8], 9)
    assert told["notes"]["global tokens"] == "one for each 9 tokens, at most 256"
    assert (told["equal_up_to"], told["loads_in_transformers"]) == (9, False)
    assert told["why_not"] == "a second stream of global tokens"
    assert told["max_difference"] <= 1e-5
    card = (tmp_path / "long" / "README.md").read_text()
    assert "| global tokens | one for each 9 tokens, at most 256 |" in card
    assert json.loads((tmp_path / "long" / "config.json").read_text())["model_type"] == "longspan-etc"
    loaded = load_model(tmp_path / "long")
    assert not loaded.report
    assert loaded.model.config.block == 9  # type: ignore[attr-defined]
    assert main(["lengthen", str(tmp_path / "short"), "--pattern", "etc", "--to", "99"]) == 0
    assert "etc, radius 30, 99 tokens" in capsys.readouterr().out


def test_what_is_written_is_what_was_compared(tmp_path: Path) -> None:
    source = tiny("fill", **KINDS["roberta"])
    save_model(source, tmp_path / "short")
    report = longspan.lengthen(tmp_path / "short", 150, out=tmp_path / "long", pattern="etc", radius=20)
    assert report.drift[0].tokens == report.equal_up_to == 21
    again = load_model(tmp_path / "long").model
    assert difference(source, again, 21) < 1e-6
    assert again.get_parameter("head.decoder.weight") is again.backbone.word_embeddings.weight
    assert again(torch.arange(150) % 41, Layout.packed([150])).shape == (150, 41)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"radius": (4, 8)}, "`radius` must be one number for all layers, for etc"),
        ({"radius": 0}, "`radius` must be at least 1"),
        ({"block": -1}, "`block` must be at least 0"),
        ({"to": 60}, "`to` must be at least 61"),
        ({"stitching": 2}, "`stitching` must be given for stitched only"),
    ],
)
def test_mistakes_are_told(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        lengthened(tiny(), **DEFAULTS | options)


@pytest.mark.parametrize(
    "config", [MPNetConfig(**SMALL, positions=SHORT), BertConfig(**SMALL, positions=SHORT, embedding_size=5)]
)
def test_a_source_that_etc_has_no_parts_for_is_refused(config: Any) -> None:
    with pytest.raises(InputError, match="`source` must be a BERT or RoBERTa that sees everything, for etc"):
        lengthened(build(config, "encode"), 100, pattern="etc")


def test_a_model_that_would_differ_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(tiny(), tmp_path / "short")
    careless = replace(lengthenings()["etc"], compared=lambda model: nullcontext())
    monkeypatch.setattr("longspan.lengthening.lengthen.lengthenings", lambda: {"etc": careless})
    with pytest.raises(CheckpointError, match="lengthened, it differs by"):
        lengthen(tmp_path / "short", 100, out=tmp_path / "long", pattern="etc", block=4)
    assert not (tmp_path / "long").exists()
