"""Models without a table of positions: saved for every task, in int8, drawn and explained."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import longspan
from helpers import READING
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.families.gte.model import GteConfig
from longspan.families.jina_bert.model import JinaBertConfig
from longspan.families.nomic_bert.model import NomicBertConfig
from longspan.families.registry import family_of, presets
from longspan.layout import Layout
from longspan.nn.quantized import quantize
from longspan.nn.rope import RopeParameters
from longspan.tasks.registry import build
from unit.families.tiny import SIZES, body, modern, some_ids, unsettle

EVERY = pytest.mark.parametrize("name", modern())
LAYOUT = Layout.packed([67, 30])


@pytest.mark.parametrize("task", READING)
@EVERY
def test_every_task_is_saved_and_read_again(tmp_path: Path, name: str, task: str) -> None:
    config = modern()[name]
    model = build(config, task).eval()
    unsettle(model)
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert not loaded.report
    assert loaded.model.backbone.config == config
    with torch.no_grad():
        expected, found = (one(some_ids(97), LAYOUT) for one in (model, loaded.model))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_a_config_that_transformers_has_no_words_for_is_ours_and_comes_back(tmp_path: Path) -> None:
    config = GteConfig(**SIZES, rope=RopeParameters(rope_type="ntk", factor=3.0))
    assert family_of(config, {}).why_not(config, "Model") == "such angles"
    save_model(build(config, "encode"), tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.config["model_type"] == "longspan-gte"
    assert loaded.model.backbone.config == config


@EVERY
def test_int8_comes_near(name: str) -> None:
    model, ids = build(modern()[name], "tag").eval(), some_ids(97)
    unsettle(model)
    with torch.no_grad():
        exact = model(ids, LAYOUT)
        quantize(model)
        rough = model(ids, LAYOUT)
    assert 0 < (rough - exact).norm() < 0.1 * exact.norm()


def test_int8_vectors_of_modernbert_s_own_width_point_the_same_way() -> None:
    config = replace(presets()["modernbert-base"].encoder, vocab_size=500, pad_id=0, layers=6)
    model, ids = config.backbone().eval(), some_ids(97)
    with torch.no_grad():
        exact = model(ids, LAYOUT)
        quantize(model)
        rough = model(ids, LAYOUT)
    assert torch.cosine_similarity(exact, rough).min() > 0.995


@EVERY
def test_it_is_drawn_and_explained(tmp_path: Path, name: str) -> None:
    save_model(build(modern()[name], "encode"), tmp_path)
    assert "<svg" in longspan.draw(str(tmp_path), 40).svg()
    report = longspan.explain(str(tmp_path), 250, gflops=100)
    assert report.work.parameters == sum(p.numel() for p in body(modern()[name]).parameters())


def test_sizes_that_cannot_be_are_named() -> None:
    with pytest.raises(InputError, match="`width` must be an even number for each head, but is 24"):
        GteConfig(**SIZES | {"heads": 8})
    with pytest.raises(InputError, match="`trained_positions` must be at least 1"):
        NomicBertConfig(**SIZES, trained_positions=0)
    with pytest.raises(InputError, match="`buckets` must be 0, as distances have scores already"):
        JinaBertConfig(**SIZES, buckets=32)
