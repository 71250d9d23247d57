"""Rotary positions against their definition in float64, and the frequencies against transformers."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from longspan import Layout
from longspan import native as compiled
from longspan.errors import InputError
from longspan.nn.rope import KINDS, RopeParameters
from longspan.nn.rotary import Rotations, rotate, rotations

LONGEST = 128


@pytest.fixture(params=["avx512", "avx2", "scalar"])
def target(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param not in compiled.targets():
        pytest.skip(f"the native core is not built, or this machine has no {request.param}")
    with compiled.force_target(request.param):
        yield request.param


def expected(x: Tensor, heads: int, turn: Rotations) -> Tensor:
    """By complex numbers: the halves of a head are real and imaginary parts."""
    half = turn.cos.shape[1]
    first = x[:, : 2 * half * heads].double().unflatten(1, (heads, 2, half))
    angle = torch.complex(turn.cos.double(), turn.sin.double()).unsqueeze(1)
    turned = torch.complex(first[:, :, 0], first[:, :, 1]) * angle
    return torch.cat(
        [torch.stack([turned.real, turned.imag], 2).flatten(1), x[:, 2 * half * heads :].double()], 1
    )


@pytest.mark.parametrize("size", [2, 6, 32, 34, 64, 96])
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.usefixtures("target")
def test_heads_are_turned_in_place_while_reading_and_differentiably_in_training(
    size: int, heads: int
) -> None:
    layout = Layout.packed([1, 37, 64])
    turn = rotations(RopeParameters(rope_theta=100.0), size, layout)
    x = torch.randn(layout.size, heads * size + 5)
    true = expected(x, heads, turn)
    with torch.no_grad():
        room = x.clone()
        found = rotate(room, heads, turn)
        assert found is room
        torch.testing.assert_close(found.double(), true, rtol=0, atol=1e-6)
    leaf = x.clone().requires_grad_()
    upstream = torch.randn_like(x)
    for way in (leaf * 1.0, leaf):  # a result of another operation, which may be written over, and a leaf
        leaf.grad = None
        turned = rotate(way, heads, turn)
        torch.testing.assert_close(turned.double(), true, rtol=0, atol=1e-6)
        turned.backward(upstream)
        back = expected(upstream, heads, Rotations(turn.cos, -turn.sin))
        assert leaf.grad is not None
        torch.testing.assert_close(leaf.grad.double(), back, rtol=0, atol=1e-6)
    torch.testing.assert_close(leaf.detach(), x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_types_are_turned_by_torch(dtype: torch.dtype) -> None:
    turn, x = rotations(RopeParameters(), 8, Layout.packed([9])), torch.randn(9, 20).to(dtype)
    found = rotate(x.clone(), 2, turn)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected(x, 2, turn).to(dtype), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ntk"])
@pytest.mark.parametrize("length", [LONGEST, 5 * LONGEST])
def test_frequencies_are_those_of_transformers(kind: str, length: int) -> None:
    stated: dict[str, Any] = {"rope_type": kind, "rope_theta": 5000.0}
    if kind != "default":
        stated["factor"] = 4.0
    if kind in ("yarn", "llama3"):
        stated["original_max_position_embeddings"] = LONGEST
    if kind == "llama3":
        stated |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    config = LlamaConfig(
        hidden_size=64, num_attention_heads=2, max_position_embeddings=LONGEST, rope_parameters=stated
    )
    ours = dict(stated, original_max_position_embeddings=LONGEST) if kind != "default" else stated
    rope = RopeParameters(**ours)
    if kind == "default":
        theirs, factor = 1.0 / 5000.0 ** (torch.arange(0, 32, 2).float() / 32), 1.0
    else:
        theirs, factor = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=length)
    torch.testing.assert_close(rope.frequencies(32, length), theirs, rtol=1e-6, atol=0)
    assert rope.scaling == pytest.approx(factor)


def test_dynamic_scaling_depends_on_a_document_and_not_on_its_mates() -> None:
    rope = RopeParameters(rope_type="dynamic", factor=2.0, original_max_position_embeddings=16)
    together = rotations(rope, 8, Layout.packed([10, 40, 16]))
    apart = [rotations(rope, 8, Layout.packed([n])) for n in (10, 40, 16)]
    for found, parts in zip(together, zip(*apart, strict=True), strict=True):
        assert torch.equal(found, torch.cat(parts))
    plain = rotations(RopeParameters(), 8, Layout.packed([10, 40, 16]))
    same = (together.cos == plain.cos).all(1).numpy()
    assert same[np.r_[0:10, 50:66]].all()
    assert not same[11:50].any()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rope_type": "longrope"}, "`rope_type` must be one of"),
        ({"rope_theta": 0.5}, "`rope_theta` must be from 1"),
        ({"factor": 0.0}, "`factor`"),
        ({"rope_type": "yarn", "factor": 2.0}, "`original_max_position_embeddings` must be at least 1"),
        ({"low_freq_factor": 4.0}, "`high_freq_factor` must be above"),
    ],
)
def test_wrong_angles_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        RopeParameters(**fields)


@pytest.mark.usefixtures("target")
def test_the_core_refuses_what_it_cannot_read() -> None:
    x, cos = torch.randn(5, 2, 8), torch.ones(5, 4)
    for given in (
        (x[:, :, ::2], cos[:, :2], cos[:, :2]),
        (x, cos[:4], cos),
        (x, cos, cos.double()),
        (torch.randn(5, 2, 7), cos, cos),
        (x.expand(5, 2, 8)[:1].expand(5, 2, 8), cos, cos),
    ):
        with pytest.raises(InputError, match="must be float32"):
            compiled.rotate(*given)
