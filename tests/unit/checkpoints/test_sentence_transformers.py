"""Folders of sentence-transformers: their pooling is read from old and new keys, and ours is written."""

import json
from pathlib import Path
from typing import Any

import pytest

from helpers import task_name
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.checkpoints.sentence_transformers import read_modules
from longspan.errors import CheckpointError, InputError
from longspan.families.bert.model import BertConfig
from longspan.nn.heads import PoolingHead
from longspan.tasks.registry import build

SMALL = BertConfig(vocab_size=41, width=12, layers=1, heads=3, feed_forward=20, positions=64)


def folder_of(
    place: Path, pooling: dict[str, Any], kinds: tuple[str, ...] = ("Transformer", "Pooling")
) -> Path:
    (place / "1_Pooling").mkdir(parents=True)
    (place / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    listed = [
        {
            "idx": i,
            "name": str(i),
            "path": f"{i}_{kind}" if i else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for i, kind in enumerate(kinds)
    ]
    (place / "modules.json").write_text(json.dumps(listed))
    return place


@pytest.mark.parametrize(
    ("pooling", "ours"),
    [
        (
            {
                "word_embedding_dimension": 12,
                "pooling_mode_mean_tokens": True,
                "pooling_mode_cls_token": False,
            },
            "mean",
        ),
        ({"pooling_mode_cls_token": True}, "first"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"embedding_dimension": 12, "pooling_mode": "mean"}, "mean"),
        ({"pooling_mode": ["cls"]}, "first"),
    ],
    ids=str,
)
def test_old_and_new_keys_are_read(tmp_path: Path, pooling: dict[str, Any], ours: str) -> None:
    found = read_modules(folder_of(tmp_path, pooling))
    assert found is not None
    assert (found.transformer, found.pooling, found.normalize) == (tmp_path, ours, False)


@pytest.mark.parametrize(
    "pooling",
    [
        {},
        {"pooling_mode_lasttoken": True},
        {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True},
        {"pooling_mode": {"mean": 1}},
        {"pooling_mode": [["mean"]]},
    ],
    ids=str,
)
def test_other_poolings_are_refused_by_name(tmp_path: Path, pooling: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="pooling_mode"):
        read_modules(folder_of(tmp_path, pooling))


def test_a_module_that_longspan_has_not_is_refused_behind_the_pooling(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"pooling_mode": "mean"}, ("Transformer", "Pooling", "LSTM"))
    with pytest.raises(CheckpointError, match="Transformer, Pooling, LSTM"):
        read_modules(folder)


@pytest.mark.parametrize(
    "kind", ["os.system", "sentence_transformers", "sentence_transformers.evil()", 3, None]
)
def test_types_of_others_are_refused(tmp_path: Path, kind: object) -> None:
    (tmp_path / "modules.json").write_text(json.dumps([{"path": "", "type": kind}]))
    with pytest.raises(CheckpointError, match="type"):
        read_modules(tmp_path)


@pytest.mark.parametrize(
    "path", ["../1_Pooling", "/etc", "1_Pooling/..", "C:\\x", ".", 7, None, "1_Pooling\0"]
)
def test_folders_elsewhere_are_refused(tmp_path: Path, path: object) -> None:
    listed = [{"path": path, "type": "sentence_transformers.models.Transformer"}]
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(CheckpointError):
        read_modules(tmp_path)


@pytest.mark.parametrize("text", ["{}", "[1]", "[]", "nonsense", '[{"path": "', "[" * 1000], ids=str)
def test_nonsense_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "modules.json").write_text(text)
    with pytest.raises(CheckpointError):
        read_modules(tmp_path)


@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
@pytest.mark.parametrize("normalize", [False, True])
def test_our_pooling_is_written_and_read_back(tmp_path: Path, pooling: str, normalize: bool) -> None:
    save_model(build(SMALL, "encode", pooling=pooling, normalize=normalize), tmp_path)
    head = load_model(tmp_path).model.head
    assert isinstance(head, PoolingHead)
    assert (head.pooling, head.normalize, head.dense) == (pooling, normalize, None)
    chosen = load_model(tmp_path, pooling="max", normalize=False).model.head
    assert isinstance(chosen, PoolingHead)
    assert (chosen.pooling, chosen.normalize) == ("max", False)


def test_a_transformer_in_a_folder_of_its_own_is_found(tmp_path: Path) -> None:
    save_model(build(SMALL, "encode"), tmp_path / "0_Transformer")
    (tmp_path / "0_Transformer" / "modules.json").unlink()
    folder_of(tmp_path, {"pooling_mode": "max"})
    listed = json.loads((tmp_path / "modules.json").read_text())
    listed[0]["path"] = "0_Transformer"
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    loaded = load_model(tmp_path)
    assert loaded.folder == tmp_path / "0_Transformer"
    assert task_name(loaded.model) == "encode"
