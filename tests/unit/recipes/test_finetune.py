"""Fine-tuning: any task learns what it is shown, and the folder is a model that others read."""

import math
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification

import longspan
from longspan.errors import InputError
from longspan.training.optimizer import AdamW
from unit.tasks.tiny import FAMILIES, reader

PLACES, WORDS = ("Rome", "London"), ("river", "bridge", "company")
TEXTS = [f"{place} {word} {'so on ' * n}" for n in (1, 4) for place in PLACES for word in WORDS]
LABELS = ["south" if text.startswith("Rome") else "north" for text in TEXTS]
QUICK: dict[str, Any] = {"optimizer": AdamW(lr=3e-3), "batch_size": 4, "progress": False}


def classifier(family: str = "longformer", **options: Any) -> longspan.Reader:
    made = fresh(family, "classify", labels=2, **options)
    made.labels = ("north", "south")
    return made


def fresh(family: str, task: str, **options: Any) -> longspan.Reader:
    """One whose weights nobody else has."""
    made = reader(family, task, **options)
    made.model = deepcopy(made.model)
    return made


@pytest.mark.parametrize("family", FAMILIES)
def test_a_classifier_learns_and_is_saved(family: str, tmp_path: Path) -> None:
    one = classifier(family)
    report = longspan.finetune(
        one,
        TEXTS,
        labels=LABELS,
        out=tmp_path,
        validation=(TEXTS[::2], LABELS[::2]),
        epochs=30,
        metric="accuracy",
        **QUICK,
    )
    assert report.metrics["accuracy"] == 1.0
    found = longspan.load(tmp_path).classify(TEXTS)
    assert [result["label"] for result in found] == LABELS
    assert "accuracy, held out | 1 |" in (tmp_path / "README.md").read_text()


def test_the_folder_is_one_of_transformers(tmp_path: Path) -> None:
    one = classifier()
    longspan.finetune(one, TEXTS, labels=LABELS, out=tmp_path, steps=2, **QUICK)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert model.config.id2label == {0: "north", 1: "south"}


def test_a_share_is_held_back_and_the_rest_is_trained_on(tmp_path: Path) -> None:
    one = classifier()
    report = longspan.finetune(one, TEXTS, labels=LABELS, out=tmp_path, validation=0.25, epochs=1, **QUICK)
    assert set(report.metrics) == {"loss", "accuracy"}
    assert report.steps == 3  # of nine texts


CASES: dict[str, tuple[list[list[object]], list[object]]] = {
    "tag": ([["Anna lives in Rome."]], [[(14, 18, "LABEL_1")]]),
    "answer": ([["Where?"], ["Anna lives in Rome."]], [[(14, 18)]]),
    "choose": ([["Anna lives in"], [["Rome", "London", "a river"]]], [1]),
    "fill": ([["Anna lives in <mask>."]], [[40]]),
    "encode": ([["Anna lives in Rome.", "The river Thames"]], ["in Rome lives Anna", "a river"]),
}


@pytest.mark.parametrize("task", CASES)
def test_every_task_learns_its_example(task: str, tmp_path: Path) -> None:
    inputs, labels = CASES[task]
    one = fresh("longformer", task, **({"labels": 2} if task == "tag" else {}))
    data = one.examples(*inputs, labels=labels)
    assert len(data.lengths) == len(labels)
    report = longspan.finetune(
        one, *inputs, labels=labels, out=tmp_path, validation=(*inputs, labels), epochs=30, **QUICK
    )
    first, last = (longspan.training.log.read_log(tmp_path / "run")[i] for i in (1, -2))
    assert report.best_step
    assert last["loss"] < first["loss"] / 2


def test_windows_of_a_long_text_share_its_label(tmp_path: Path) -> None:
    one = classifier(positions=40, overflow="window")
    texts = ["Rome and so on " * 30, "London river"]
    data = one.examples(texts, labels=["south", "north"])
    batch = data.batch(torch.arange(2).numpy())
    assert data.pieces == len(batch.layout.lengths) > 3
    assert isinstance(batch.labels, torch.Tensor)
    assert sorted(batch.labels.tolist()) == [0] + [1] * (data.pieces - 1)
    longspan.finetune(one, texts, labels=["south", "north"], out=tmp_path, steps=1, **QUICK)


def test_rare_classes_count_more_in_training_and_in_evaluation(tmp_path: Path) -> None:
    one, labels = classifier(), ["north"] * 9 + ["south"] * 3
    for part in map(vars, one.model.modules()):
        part |= {name: 0.0 for name in ("dropout", "feed_forward_dropout") if name in part}
    chances = [
        best["score"] if best["label"] == label else 1 - best["score"]
        for best, label in zip(one.classify(TEXTS), labels, strict=True)
    ]
    weights = [12 / (2 * labels.count(label)) for label in labels]  # scikit-learn's "balanced"
    nats = [-math.log(chance) for chance in chances]
    expected = sum(w * n for w, n in zip(weights, nats, strict=True)) / sum(weights)
    options: dict[str, Any] = QUICK | {"batch_size": 12, "steps": 1, "class_weights": "balanced"}
    longspan.finetune(one, TEXTS, labels=labels, out=tmp_path, validation=(TEXTS, labels), **options)
    first, step, _ = longspan.training.log.read_log(tmp_path / "run")
    assert first["eval/loss"] == pytest.approx(expected, rel=1e-4)
    assert step["loss"] == pytest.approx(expected, rel=1e-4)
    assert abs(expected - sum(nats) / 12) > 0.01


def test_frozen_weights_stay_as_they_are(tmp_path: Path) -> None:
    one = classifier()
    before = one.model.backbone.word_embeddings.weight.clone()
    longspan.finetune(one, TEXTS, labels=LABELS, out=tmp_path, freeze=["backbone"], steps=3, **QUICK)
    assert torch.equal(before, one.model.backbone.word_embeddings.weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"validation": (TEXTS,)},
            "`validation` must be 1 lists of inputs and one of labels",
        ),
        ({"validation": 0.0}, "`validation` must be a share that leaves some of the 12 examples"),
        ({"labels": LABELS[1:]}, "`labels` must be one for each of the 12 inputs"),
        ({"labels": ["west"] * 12}, "`labels` must be one of north, south"),
        ({"freeze": ["bckbone"]}, "`freeze` must be a pattern of parameter names"),
        ({"metric": "f1", "validation": 0.5}, "`metric` must be one of loss, accuracy"),
    ],
)
def test_mistakes_are_told(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    given = {"labels": LABELS, **options}
    with pytest.raises(InputError, match=message):
        longspan.finetune(classifier(), TEXTS, out=tmp_path, epochs=1, **given, **QUICK)


@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"gradient_checkpointing": True}])
def test_half_types_and_recomputation_learn_as_well(options: dict[str, Any], tmp_path: Path) -> None:
    one = classifier()
    longspan.finetune(one, TEXTS, labels=LABELS, out=tmp_path, epochs=30, **options, **QUICK)
    assert [result["label"] for result in one.classify(TEXTS)] == LABELS
    assert all(p.dtype == torch.float32 for p in one.model.parameters())
    assert not one.model.gradient_checkpointing


def test_changes_of_low_rank_are_learned_and_saved_alone_and_merged(tmp_path: Path) -> None:
    one = classifier()
    one.save(tmp_path / "base")
    before = {name: weight.clone() for name, weight in one.model.backbone.named_parameters()}
    more = QUICK | {"labels": LABELS, "out": tmp_path / "out", "lora": {"r": 4}, "epochs": 8}
    more |= {"optimizer": AdamW(lr=2e-2)}
    longspan.finetune(one, TEXTS, **more)
    for name, weight in one.model.backbone.named_parameters():
        assert ".lora_" in name or torch.equal(weight, before[name])
    merged = longspan.load(tmp_path / "out")
    beside = longspan.load(tmp_path / "base", adapter=tmp_path / "out/adapter")
    for found in (merged, beside):
        assert [result["label"] for result in found.classify(TEXTS)] == LABELS
    again = longspan.load(tmp_path / "base", labels=["north", "south"])
    longspan.finetune(again, TEXTS, **more)  # the run is over: its weights are taken
    assert again.classify(TEXTS) == one.classify(TEXTS)
    longspan.finetune(one, TEXTS, **more)
    assert again.classify(TEXTS) == one.classify(TEXTS)


@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"gradient_checkpointing": True}, {"ema": 0.5}])
def test_changes_of_low_rank_are_learned_in_any_way(tmp_path: Path, options: dict[str, Any]) -> None:
    one = classifier("modernbert")
    before = [result["score"] for result in one.classify(TEXTS)]
    longspan.finetune(
        one, TEXTS, labels=LABELS, out=tmp_path, lora={"lora_dropout": 0.1}, steps=2, **options, **QUICK
    )
    after = [result["score"] for result in one.classify(TEXTS)]
    assert before != after
    assert [result["score"] for result in longspan.load(tmp_path).classify(TEXTS)] == pytest.approx(
        after, abs=1e-5
    )
