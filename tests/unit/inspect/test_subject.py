"""What a name stands for, and how little of a model is read to look at it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from longspan.builtin import RECIPE
from longspan.errors import CheckpointError, InputError
from longspan.families.bert.model import BertConfig
from longspan.families.lengthening import Short
from longspan.families.longformer.model import LongformerConfig
from longspan.families.registry import lengthenings, presets
from longspan.inspect import subject as looking
from longspan.inspect.subject import names_a_model, subject
from longspan.patterns import Full, Window

WRITTEN = {"model_type": "longformer", "attention_window": 64, "num_hidden_layers": 3, "hidden_size": 48}
WRITTEN |= {"num_attention_heads": 4}


def folder(path: Path, config: dict[str, Any] = WRITTEN) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    return path


def test_a_folder_needs_a_config_and_nothing_else(tmp_path: Path) -> None:
    found = subject(folder(tmp_path / "mine"))
    assert found.name == "mine"
    assert isinstance(found.config, LongformerConfig)
    assert found.config.radius == (32, 32, 32)


def test_a_folder_of_sentence_transformers_is_read(tmp_path: Path) -> None:
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling")])
    ]
    (folder(tmp_path) / "modules.json").write_text(json.dumps(modules))
    folder(tmp_path / "1_Pooling", {"pooling_mode_mean_tokens": True, "word_embedding_dimension": 48})
    assert subject(str(tmp_path)).config.layers == 3


def test_a_model_in_the_cache_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path))
    folder(tmp_path / "models" / "my-model")
    assert names_a_model("my-model")
    assert subject("my-model").name == "my-model"
    assert not names_a_model("another")


def test_of_a_model_on_the_hub_only_small_files_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["config.json", "modules.json", "1_Pooling/config.json", "model.safetensors", "pytorch_model.bin"]

    def resolve(name: str, *, files: Any) -> Path:
        assert name == "org/model"
        assert files([*names, "modeling.py", "a/b/config.json"]) == names[:3]
        return folder(tmp_path)

    monkeypatch.setattr(looking, "resolve", resolve)
    assert subject("org/model").name == "org/model"


def test_the_preset_of_the_built_in_model_is_its_recipe() -> None:
    short = presets()["minilm-l6"]
    given = {name: RECIPE[name] for name in ("radius", "block", "stitching")}
    source = Short(config=short.encoder, architecture="Model", has_decoder=False, to=4096)
    options = given | {"sif_weights": torch.ones(short.vocab_size)}
    assert presets()["default"] == lengthenings()["stitched"].config(source, options)


def test_a_config_is_a_model_too() -> None:
    assert subject(BertConfig(layers=2)).family == "Bert"


def test_patterns_have_the_heads_that_they_list_or_twelve() -> None:
    assert subject([Full(), Window((1, 2, 3))]).config.heads == 3
    assert subject(Full()).config.heads == 12
    assert subject(Full(), heads=5, head_size=16).config.width == 80
    assert subject(Full()).layout().size == 4096


@pytest.mark.parametrize("name", presets())
def test_every_preset_can_be_laid_out(name: str) -> None:
    found = subject(name)
    layout = found.layout(100)
    assert len(found.config.attention(layout)) == found.config.layers
    assert found.layout().size == min(found.config.longest, 4096)


@pytest.mark.parametrize("wrong", ["longformer-bas", "a/b/c", ""])
def test_a_name_of_nothing_is_refused_with_all_that_there_is(wrong: str) -> None:
    with pytest.raises(InputError, match=r"must be a folder with config\.json.*longformer-base"):
        subject(wrong)


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(InputError, match="`model` must be a config, patterns, or a folder"):
        subject(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("written", ['{"model_type": "gpt2"}', "{", None])
def test_a_config_that_cannot_be_read_is_refused(tmp_path: Path, written: str | None) -> None:
    if written is not None:
        (tmp_path / "config.json").write_text(written)
    with pytest.raises((InputError, CheckpointError)):
        subject(tmp_path)
