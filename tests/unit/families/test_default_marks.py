"""Which tokens are global when nobody says: those of the task, by hand as in a Reader."""

import os
import socket
from typing import Any

import pytest
import torch
from torch import distributed
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

from helpers import READING, WRITING
from longspan.errors import InputError
from longspan.families.etc.model import EtcConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.registry import FAMILIES
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.families.stitched.model import StitchedConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.tasks.registry import TASKS, build
from unit.families.tiny import SIZES, some_ids
from unit.tasks.tiny import CORPUS, reader

SMALL = SIZES | {"layers": 1}
CONFIGS: dict[str, Any] = {
    family.name: family.config(**SMALL) for family in FAMILIES if family.name != "Stitched"
}
CONFIGS["ETC without global tokens"] = EtcConfig(**SMALL, block=0)
CONFIGS["SIF"] = StitchedConfig(**SMALL, sif_weights=True, stitching=1)
DECODER: dict[str, Any] = {"layers": 1, "heads": 2, "feed_forward": 8, "positions": 99}
BEFORE_A_DECODER = Seq2SeqConfig(encoder=LongformerConfig(**SMALL, token_types=0), **DECODER)


@pytest.mark.parametrize("family", ["longformer", "etc"])
def test_a_model_called_by_hand_gives_what_its_reader_gives(family: str) -> None:
    made = reader(family, "classify")
    ids = torch.from_numpy(made.tokenizer.encode(CORPUS[0]).ids.astype("int64"))
    (batch,) = made.prepare([CORPUS[0]])
    with torch.no_grad():
        found = made.model(ids, Layout.packed([len(ids)]))
        assert torch.equal(found, made.model(batch.ids, batch.layout, batch.token_types))
        assert torch.equal(found, made.model(ids, Layout.padded(torch.ones(1, len(ids)).bool().numpy())))
        assert not torch.equal(found, made.model(ids, Layout.packed([len(ids)], marked=[[]])))


@pytest.mark.parametrize("family", ["bigbird", "bert"])
def test_a_family_that_leaves_nothing_to_the_task_marks_nothing(family: str) -> None:
    model, ids = reader(family, "classify").model, some_ids(30)
    with torch.no_grad():
        assert torch.equal(model(ids, Layout.packed([30])), model(ids, Layout.packed([30], marked=[[]])))


@pytest.mark.parametrize("task", ["answer", "choose"])
def test_global_tokens_that_ids_do_not_tell_must_be_given(task: str) -> None:
    model, ids = reader("longformer", task).model, some_ids(30)
    with pytest.raises(InputError, match=r"`marked` must be given for a task whose .* Reader.prepare"):
        model(ids, Layout.packed([30]))
    model(ids, Layout.packed([30], marked=[[]]))


def test_tags_that_tell_which_token_is_global_are_not_changed() -> None:
    model, ids = reader("etc", "classify").model, some_ids(30)
    tags = {"parent": torch.arange(30).div(10, rounding_mode="floor").numpy()}
    with torch.no_grad():
        found = model(ids, Layout.packed([30], tags=tags))
        assert torch.equal(found, model(ids, Layout.packed([30], tags=tags, marked=[[]])))


@pytest.mark.parametrize("layout", [torch.ones(2, 512), [30], None])
def test_what_is_no_layout_is_named(layout: Any) -> None:
    model = reader("longformer", "classify").model
    kind = {"Tensor": r"a Tensor of shape \(2, 512\)", "list": "a list", "NoneType": "None"}
    expected = rf"`layout` must be a Layout, but is {kind[type(layout).__name__]}\. Use Layout.packed"
    for module in (model, model.backbone):
        with pytest.raises(InputError, match=expected):
            module(some_ids(30), layout)


def loss_of(model: TaskModel, layout: Layout) -> torch.Tensor:
    ids = some_ids(layout.size)
    if model.architecture == "ForConditionalGeneration":
        return model(ids, layout, some_ids(5), Layout.packed([2, 3])).square().sum()  # type: ignore[no-any-return]
    return model(ids, layout).square().sum()  # type: ignore[no-any-return]


@pytest.mark.parametrize("marked", [None, [[], []], [[0, 3], [1]]], ids=["unmarked", "none", "some"])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_parameter_has_a_gradient(name: str, marked: Any) -> None:
    for task in READING if name == "Longformer" else ("encode", "classify"):
        if marked is not None or task not in ("answer", "choose"):
            model = build(CONFIGS[name], task)
            loss_of(model, Layout.packed([40, 30], marked=marked)).backward()
            waiting = [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None]
            assert waiting == [], task


@pytest.mark.parametrize("task", WRITING)
def test_every_parameter_of_a_model_with_a_decoder_has_a_gradient(task: str) -> None:
    model = build(BEFORE_A_DECODER, task)
    loss_of(model, Layout.packed([40, 30], marked=[[], []])).backward()
    assert [n for n, p in model.named_parameters() if p.requires_grad and p.grad is None] == []


def test_marks_change_no_gradient_but_those_of_global_projections() -> None:
    model = build(CONFIGS["Longformer"], "tag").eval()
    loss_of(model, Layout.packed([40, 30])).backward()
    zero = [n for n, p in model.named_parameters() if p.grad is not None and not p.grad.any()]
    assert {n for n in zero if "key" not in n} == {
        n for n, _ in model.named_parameters() if "global_query" in n or "global_value" in n
    }


def train(rank: int, port: int) -> None:
    """Two steps of one of two processes; DistributedDataParallel is an error where a gradient is missing."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"}
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", rank=rank, world_size=2)
    torch.manual_seed(0)
    config = PoolingformerConfig(**SMALL, radius=5)
    model = DistributedDataParallel(build(config, "classify", labels=2), find_unused_parameters=False)
    for step in range(2):
        model.zero_grad()
        # One process reads documents with global tokens, the other documents without any.
        layout = Layout.packed([40 + step, 30], marked=[(), ()] if rank else None)
        logits = model(some_ids(layout.size, seed=rank), layout)
        TASKS["classify"].loss(logits, torch.tensor([0, 1])).backward()
    gradients = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    both = [torch.empty_like(gradients) for _ in range(2)]
    distributed.all_gather(both, gradients)
    assert torch.equal(*both)
    distributed.destroy_process_group()


@pytest.mark.skipif(not distributed.is_available(), reason="torch is built without distributed")
def test_two_processes_train_together_without_looking_for_unused_parameters() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    spawn(train, (port,), nprocs=2)
