"""Groups of parameters: what decays, what is frozen, and the learning rate of each layer and name."""

from typing import Any

import pytest
import torch
from torch import nn

from longspan.errors import InputError
from longspan.families.char_lm.model import CharLM, CharLMConfig
from longspan.families.task_model import TaskModel
from longspan.nn.layers import Layers
from longspan.tasks.registry import build
from longspan.training.groups import Group, freeze, parameter_groups, train_only
from unit.tasks.tiny import FAMILIES, config, writer

WORDS = "backbone.embeddings.words.weight"


def model(family: str = "longformer", task: str = "classify") -> TaskModel:
    return build(config(family), task, labels=3)


def scales(groups: list[Group]) -> dict[str, float]:
    return {name: group.scale for group in groups for name in group.names}


def decays(groups: list[Group]) -> dict[str, float]:
    return {name: group.weight_decay for group in groups for name in group.names}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_parameter_stands_in_one_group_and_only_norms_and_biases_do_not_decay(family: str) -> None:
    made = model(family)
    groups = parameter_groups(made, 1e-3, 0.1)
    assert sorted(name for group in groups for name in group.names) == sorted(dict(made.named_parameters()))
    assert len(groups) == 2
    for name, decay in decays(groups).items():
        assert (decay == 0) == (name.endswith("bias") or "norm" in name), name
    assert set(scales(groups).values()) == {1.0}


@pytest.mark.parametrize("family", ["char-lm", "etc"])
def test_biases_of_two_dimensions_do_not_decay(family: str) -> None:
    small = CharLMConfig(width=8, layers=1, heads=2, feed_forward=16, radius=(2,), position_type="relative")
    made = CharLM(small) if family == "char-lm" else model(family)
    found = decays(parameter_groups(made, 1e-3, 0.1))
    biases = [name for name, p in made.named_parameters() if name.endswith("bias") and p.dim() == 2]
    assert biases
    assert {found[name] for name in biases} == {0.0}


def test_embeddings_need_not_decay() -> None:
    found = decays(parameter_groups(model(), 1e-3, 0.1, decay_embeddings=False))
    assert found[WORDS] == found["backbone.embeddings.positions.weight"] == 0
    assert found["head.out.weight"] == 0.1


def test_groups_and_names_are_the_same_in_the_order_of_the_model() -> None:
    one, two = (parameter_groups(model(), 1e-3, 0.1, 0.5, {"head.*": 1e-2}) for _ in range(2))
    assert [group.names for group in one] == [group.names for group in two]
    order = [*dict(model().named_parameters())]
    for group in one:
        assert [*group.names] == sorted(group.names, key=order.index)


@pytest.mark.parametrize("family", FAMILIES)
def test_rates_fall_from_the_head_to_the_embeddings(family: str) -> None:
    found = scales(parameter_groups(model(family), 1e-3, 0.0, 0.5))
    for name, scale in found.items():
        if name.startswith("head."):
            assert scale == 1, name
        elif ".layers." in name:
            assert scale == (0.25 if ".layers.0." in name else 0.5), name
        else:
            assert scale == 0.125, name
    assert found[WORDS] == 0.125


def test_encoder_and_decoder_are_stacks_of_their_own() -> None:
    found = scales(parameter_groups(writer(), 1e-3, 0.0, 0.5))
    for side in ("encoder", "decoder"):
        assert found[f"backbone.{side}.layers.1.attention.qkv.weight"] == 0.5
        assert found[f"backbone.{side}.layers.0.attention.qkv.weight"] == 0.25
        assert found[f"backbone.{side}.embeddings.positions.weight"] == 0.125


def test_a_model_that_is_no_backbone_has_its_embeddings_before_its_stack() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.layers = nn.Embedding(5, 4), Layers([nn.Linear(4, 4), nn.Linear(4, 4)])
            self.out = nn.Linear(4, 5)

    found = scales(parameter_groups(Plain(), 1e-3, 0.0, 0.5))
    assert found["words.weight"] == 0.125
    assert found["layers.0.weight"] == 0.25
    assert found["layers.1.bias"] == 0.5
    assert found["out.weight"] == 1


def test_a_rate_by_name_holds_whatever_the_depth_and_the_first_pattern_counts() -> None:
    rates = {"*.layers.0.attention": 3e-3, "backbone.layers.0.*": 5e-3, "head": 1e-2}
    found = scales(parameter_groups(model(), 1e-3, 0.0, 0.5, rates))
    assert found["backbone.layers.0.attention.qkv.weight"] == pytest.approx(3)
    assert found["backbone.layers.0.feed_forward.up.weight"] == pytest.approx(5)
    assert found["head.out.bias"] == pytest.approx(10)
    assert found["backbone.layers.1.attention.qkv.weight"] == 0.5


def test_what_is_frozen_is_in_no_group_and_is_not_changed() -> None:
    made = model()
    names = freeze(made, ("backbone.embeddings.*", "*norm*"))
    assert WORDS in names
    assert "backbone.layers.1.attention_norm.weight" in names
    groups = parameter_groups(made, 1e-3, 0.1)
    trained = [name for group in groups for name in group.names]
    assert not set(names) & set(trained)
    assert {*names, *trained} == set(dict(made.named_parameters()))


def test_a_head_is_trained_alone() -> None:
    made = model()
    trained = train_only(made, ["head"])
    assert trained == ("head.dense.weight", "head.dense.bias", "head.out.weight", "head.out.bias")
    assert set(scales(parameter_groups(made, 1e-3, 0.0, 0.5)).values()) == {1.0}


def test_training_one_part_does_not_thaw_another() -> None:
    made = model()
    freeze(made, ["head.dense"])
    assert train_only(made, ["head"]) == ("head.out.weight", "head.out.bias")


def test_shared_words_have_one_name() -> None:
    made = model(task="fill")
    names = scales(parameter_groups(made, 1e-3, 0.0, 0.5))
    assert names[WORDS] == 0.125
    assert "head.decoder.weight" not in names
    assert WORDS not in train_only(made, ["head.*"])


def test_groups_are_what_torchs_optimizers_take() -> None:
    made = model()
    groups = parameter_groups(made, 1e-2, 0.1, rates={"head": 1.0})
    optimizer = torch.optim.SGD(
        [{"params": [*group.parameters.values()], "lr": 1e-2 * group.scale} for group in groups]
    )
    for parameter in made.parameters():
        parameter.grad = torch.ones_like(parameter)
    before = {name: parameter.detach().clone() for name, parameter in made.named_parameters()}
    optimizer.step()
    for name, parameter in made.named_parameters():
        step = 1.0 if name.startswith("head") else 1e-2
        torch.testing.assert_close(parameter.detach(), before[name] - step)


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (
            ["backbone.embedings.*"],
            "`freeze` must be a pattern of parameter names, but is 'backbone.embed.*"
            r"Names are backbone.embeddings, ",
        ),
        (["head.outt"], "Names are head.out, "),
        (["@@@"], "Names are backbone, backbone.embeddings, "),
        ("head", r"`freeze` must be a list of patterns, but is 'head'. Write \['head'\]"),
        ([3], "`freeze` must be a pattern of parameter names, but is 3"),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused_with_near_names(patterns: Any, message: str) -> None:
    made = model()
    with pytest.raises(InputError, match=message):
        freeze(made, patterns)
    assert all(parameter.requires_grad for parameter in made.parameters())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lr": 0.0}, "`lr` must be more than 0"),
        ({"lr": float("nan")}, "`lr` must be a number"),
        ({"weight_decay": -1.0}, "`weight_decay` must be from 0 to"),
        ({"layer_decay": 0.0}, "`layer_decay` must be more than 0"),
        ({"layer_decay": 1.5}, "`layer_decay` must be from 0 to 1"),
        (
            {"rates": {"heads": 1.0}},
            "`rates` must be a pattern of parameter names, but is 'heads'. Names are head",
        ),
        ({"rates": {"head": 0.0}}, "`rates` must be more than 0"),
    ],
)
def test_settings_that_train_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parameter_groups(model(), **{"lr": 1e-3, "weight_decay": 0.0, **options})


def test_a_model_without_anything_to_train_is_refused() -> None:
    with pytest.raises(InputError, match="`model` must be one with parameters to train, but is 'frozen'"):
        parameter_groups(model().requires_grad_(False), 1e-3, 0.0)
    with pytest.raises(InputError, match="`layer_decay` must be 1 for a model without a stack of layers"):
        parameter_groups(nn.Linear(2, 2), 1e-3, 0.0, 0.9)
