"""What a run is: other data, labels, losses or first weights in its folder are told by name."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import longspan
from longspan.errors import InputError
from longspan.training.identity import checksum
from longspan.training.loop import train
from longspan.training.source import Loss
from unit.recipes.test_finetune import LABELS, QUICK, TEXTS, classifier
from unit.training.small import Rows, Small, squares
from unit.training.test_run import same, trained


@dataclass(frozen=True)
class Known(Rows):
    """Rows that say what they are."""

    digest: int = 1


@dataclass(frozen=True)
class Scaled:
    """A loss with an option."""

    digest: float = 1.0

    def __call__(self, model: nn.Module, batch: tuple[Tensor, Tensor]) -> Loss:
        found = squares(model, batch)
        return Loss(found.total * self.digest, found.weight)


def test_other_data_of_the_same_lengths_is_refused(tmp_path: Path) -> None:
    trained(tmp_path, data=Known())
    trained(tmp_path, data=Known())
    with pytest.raises(InputError, match="`out` must be that of a run with the same data and labels"):
        trained(tmp_path, data=Known(digest=2))


def test_another_option_of_the_loss_is_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"out": tmp_path, "steps": 1, "batch_size": 2, "progress": False}
    train(Small(), Rows(), Scaled(), **options)
    with pytest.raises(InputError, match="`out` must be that of a run with the same options of the loss"):
        train(Small(), Rows(), Scaled(2.0), **options)


@pytest.mark.parametrize("part", ["first", "last"])
def test_other_weights_at_its_beginning_are_refused_frozen_ones_too(tmp_path: Path, part: str) -> None:
    def model(change: float) -> Small:
        made = Small()
        made.first.requires_grad_(False)
        with torch.no_grad():
            getattr(made, part).bias.add_(change)
        return made

    trained(tmp_path, model(0.0))
    with pytest.raises(InputError, match=r"the same weights at its beginning, .* load it again"):
        trained(tmp_path, model(1.0))


def test_a_model_that_the_run_has_trained_goes_on_but_not_without_a_checkpoint(tmp_path: Path) -> None:
    model = Small()
    first = trained(tmp_path, model)
    assert trained(tmp_path, model) == first
    for path in (tmp_path / "checkpoints").iterdir():
        path.rename(tmp_path / path.name)
    with pytest.raises(InputError, match="the same weights at its beginning"):
        trained(tmp_path, model)
    again = Small()
    trained(tmp_path, again)
    assert same(model, again)


def test_labels_texts_and_class_weights_that_change_are_told(tmp_path: Path) -> None:
    options: dict[str, Any] = {"out": tmp_path, "steps": 1, **QUICK}
    longspan.finetune(classifier(), TEXTS, labels=LABELS, **options)
    fixed = ["north", *LABELS[1:]]
    with pytest.raises(InputError, match="the same data and labels"):
        longspan.finetune(classifier(), TEXTS, labels=fixed, **options)
    turned = [TEXTS[0].replace("river", "bridge"), *TEXTS[1:]]
    with pytest.raises(InputError, match="the same data and labels"):
        longspan.finetune(classifier(), turned, labels=LABELS, **options)
    with pytest.raises(InputError, match="the same options of the loss"):
        longspan.finetune(classifier(), TEXTS, labels=LABELS, class_weights=[1.0, 2.0], **options)


def test_a_new_head_and_an_adapter_do_not_depend_on_earlier_calls(tmp_path: Path) -> None:
    """So that a run goes on with a model that is loaded again."""
    classifier().save(tmp_path / "base")
    found = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        one = longspan.load(tmp_path / "base", task="tag", labels=["O", "B-a", "I-a"])
        labels: list[Any] = [[(0, 4, "a")]]
        longspan.finetune(
            one, ["Rome is"], labels=labels, out=tmp_path / "out", steps=1, lora={"r": 2}, **QUICK
        )
        found.append(checksum(one.model))
    assert found[0] == found[1]


def test_the_sum_of_weights_is_that_of_their_bits_and_quick() -> None:
    one, other = nn.Linear(2000, 2000), nn.Linear(2000, 2000)
    other.load_state_dict(one.state_dict())
    began = time.thread_time()
    assert checksum(one) == checksum(other)
    assert (time.thread_time() - began) / 2 * 150e6 / 4e6 < 10  # seconds for 150 million: usually 0.1
    with torch.no_grad():
        other.bias[3] = -other.bias[3]
    assert checksum(one) != checksum(other)
    assert checksum(one) != checksum(one.bfloat16())
