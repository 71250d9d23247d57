"""An accelerated model of transformers computes what it computed before, and is what it was in all else."""

import copy
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from longspan import hf
from longspan.errors import InputError
from longspan.hf import known
from parity.peers import close, padded, peer, words

LED: dict[str, Any] = {
    "vocab_size": 83,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "attention_window": [8, 4],
    "max_encoder_position_embeddings": 104,
    "max_decoder_position_embeddings": 32,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
FAMILIES = ("Longformer", "LED", "BigBird")
LENGTHS = (61, 50, 13)


def model(family: str, head: str = "Model", **changes: Any) -> Any:
    """A tiny model in training mode, without dropout unless `changes` say so."""
    if family != "LED":
        return peer(family, head, **changes).train()
    torch.manual_seed(0)
    return getattr(transformers, f"LED{head}")(transformers.LEDConfig(**{**LED, **changes})).train()


def batch(family: str, *marked: tuple[int, int], lengths: tuple[int, ...] = LENGTHS) -> dict[str, Tensor]:
    """A ragged batch; `marked` are (row, column) of global tokens."""
    ids = padded(words(*lengths), 1)
    inputs = {"input_ids": ids, "attention_mask": (ids != 1).long()}
    if family != "BigBird":
        inputs["global_attention_mask"] = torch.zeros_like(ids)
        for row, column in marked:
            inputs["global_attention_mask"][row, column] = 1
    if family == "LED":
        inputs["decoder_input_ids"] = ids[:, :5]
    return inputs


def results(it: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The output that stands first, and the gradients of a random sum of it to all parameters."""
    it.zero_grad()
    output = it(**inputs)[0]
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(2))
    (output * weights).sum().backward()
    gradients = {name: p.grad for name, p in it.named_parameters() if p.grad is not None}
    return {"output": output.detach()} | gradients


def agree(it: Any, inputs: dict[str, Tensor], same: Callable[[Tensor, Tensor, str], None] = close) -> None:
    """What the model computes before and after."""
    before, after = results(it, inputs), results(hf.accelerate(it), inputs)
    assert before.keys() == after.keys()
    for name, expected in before.items():
        same(after[name], expected, name)


def nearly(digits: float) -> Callable[[Tensor, Tensor, str], None]:
    def same(found: Tensor, expected: Tensor, name: str) -> None:
        error = (found - expected).abs().max().item()
        assert error <= digits * max(1.0, expected.abs().max().item()), f"{name}: {error:.1e}"

    return same


MANY = tuple((0, i) for i in range(0, 61, 7))
MARKS = {"none": (), "one": ((0, 0),), "some": ((0, 0), (0, 37), (2, 3)), "many": (*MANY, (1, 2))}


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluating"])
@pytest.mark.parametrize("marks", MARKS)
@pytest.mark.parametrize("family", ["Longformer", "LED"])
def test_padded_batches_agree_with_any_global_tokens(family: str, marks: str, training: bool) -> None:
    agree(model(family).train(training), batch(family, *MARKS[marks]))


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluating"])
@pytest.mark.parametrize(
    "changes", [{}, {"use_bias": False}, {"block_size": 3, "num_random_blocks": 2}], ids=str
)
def test_padded_batches_agree_with_random_blocks(changes: dict[str, Any], training: bool) -> None:
    agree(model("BigBird", **changes).train(training), batch("BigBird"))


@pytest.mark.parametrize("n", [1024, 1100])
def test_the_blocks_drawn_in_training_agree_at_published_lengths(n: int) -> None:
    agree(
        model("BigBird", block_size=64, num_random_blocks=3, max_position_embeddings=4096),
        batch("BigBird", lengths=(n,)),
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_float64_agrees_as_far_as_transformers_computes_in_it(family: str) -> None:
    if family == "BigBird":
        agree(model(family).double(), batch(family), nearly(1e-12))
    else:  # their softmax is of float32, where a window that is all padding has gradients that are no numbers
        inputs = batch(family, (0, 0), (1, 37), lengths=(64, 64))
        agree(model(family).double(), inputs, nearly(1e-6))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_half_types_are_not_farther_from_float32_than_transformers(family: str, dtype: torch.dtype) -> None:
    it, inputs = model(family).eval(), batch(family, *MARKS["some"])
    exact = it(**inputs)[0].detach()
    theirs = it.to(dtype)(**inputs)[0].detach()
    ours = hf.accelerate(it)(**inputs)[0].detach()
    assert ours.dtype == dtype
    far = torch.finfo(dtype).eps * exact.abs().max()
    assert (ours - exact).abs().max() <= 2 * (theirs - exact).abs().max() + far


@pytest.mark.parametrize("family", ["Longformer", "LED"])  # BigBird's own code fails under autocast
def test_autocast_is_obeyed(family: str) -> None:
    it, inputs = model(family), batch(family, *MARKS["some"])
    with torch.autocast("cpu", torch.bfloat16):
        theirs, ours = it(**inputs)[0], hf.accelerate(it)(**inputs)[0]
    assert ours.dtype == theirs.dtype
    assert (ours - theirs).abs().max() < 0.2


@pytest.mark.parametrize("head", ["ForMaskedLM", "ForQuestionAnswering", "ForMultipleChoice"])
@pytest.mark.parametrize("family", ["Longformer", "BigBird"])
def test_heads_agree(family: str, head: str) -> None:
    inputs = batch(family)
    if head == "ForQuestionAnswering":
        inputs["input_ids"][:, [5, 6, 9]] = 2  # separators
    if head == "ForMultipleChoice":
        inputs = {name: value[None] for name, value in inputs.items()}
    agree(model(family, head), inputs)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpointed_model_agrees(family: str) -> None:
    it = model(family, use_cache=False)
    it.gradient_checkpointing_enable()
    agree(it, batch(family, *MARKS["some"]))


@pytest.mark.parametrize("family", ["Longformer", "LED"])
def test_dropout_follows_the_seed_also_when_checkpointed(family: str) -> None:
    it = hf.accelerate(model(family, attention_probs_dropout_prob=0.3, use_cache=False))
    inputs = batch(family, *MARKS["some"])

    def seeded(seed: int) -> dict[str, Tensor]:
        torch.manual_seed(seed)
        return results(it, inputs)

    first, again, other = seeded(0), seeded(0), seeded(1)
    it.gradient_checkpointing_enable()
    for name, value in seeded(0).items():
        assert torch.equal(first[name], again[name]), name
        assert torch.equal(first[name], value), name
    assert not torch.equal(first["output"], other["output"])
    assert torch.equal(it.eval()(**inputs)[0], it(**inputs)[0])


@pytest.mark.parametrize("marks", ["one", "many"])
def test_dropout_has_the_mean_and_spread_of_transformers(marks: str, engine: str) -> None:
    if engine == "portable":
        pytest.skip("which pairs are dropped does not depend on the backend")
    it = model("Longformer", attention_probs_dropout_prob=0.3)
    layer = it.encoder.layer[0].attention.self
    marked = torch.zeros(1, 40, dtype=torch.bool)
    for _, column in MARKS[marks]:
        marked[0, column % 40] = True
    mask = marked.float()
    x = torch.randn(1, 40, 24).expand(100, -1, -1)
    given = tuple(value.expand(100, -1) for value in (mask, mask < 0, mask > 0))

    def draws() -> Tensor:
        with torch.no_grad():
            return torch.cat([layer(x, *given, True)[0] for _ in range(4)])

    theirs = draws()
    hf.accelerate(it)
    ours = draws()
    sure = (theirs.var(0) / 200).sqrt()
    assert ((ours - theirs).mean(0).abs() < 5.5 * sure).all()
    assert abs(float(ours.var(0).sum() / theirs.var(0).sum()) - 1) < 0.05


@pytest.mark.parametrize("family", FAMILIES)
def test_a_restored_model_is_the_old_one_bit_for_bit(family: str) -> None:
    it, inputs = model(family), batch(family, *MARKS["some"])
    before, text = results(it, inputs), repr(it)
    assert "computed by longspan" in repr(hf.accelerate(it))
    after = results(hf.restore(it), inputs)
    assert repr(it) == text
    assert all(torch.equal(after[name], value) for name, value in before.items())


@pytest.mark.parametrize("family", FAMILIES)
def test_copies_pickles_and_saved_models_are_what_they_were(family: str, tmp_path: Path) -> None:
    it, inputs = model(family).eval(), batch(family, *MARKS["some"])
    state = it.state_dict()
    expected = hf.accelerate(it)(**inputs)[0]
    assert list(it.state_dict()) == list(state)
    for other in (copy.deepcopy(it), pickle.loads(pickle.dumps(it))):
        assert hf.accelerated(other) == hf.accelerated(it) == 2
        assert torch.equal(other(**inputs)[0], expected)
    it.save_pretrained(tmp_path)
    loaded = type(it).from_pretrained(tmp_path).eval()
    assert hf.accelerated(loaded) == 0
    assert torch.equal(hf.accelerate(loaded)(**inputs)[0], expected)


def test_twice_is_once_and_all_models_are_returned() -> None:
    it = model("Longformer")
    assert hf.accelerate(hf.accelerate(it)) is it
    assert hf.accelerated(it) == 2
    assert hf.restore(it) is it
    assert hf.accelerated(it) == 0


@pytest.mark.parametrize("asked", ["in the call", "in the config"])
@pytest.mark.parametrize("family", FAMILIES)
def test_attention_tensors_come_from_transformers(family: str, asked: str) -> None:
    it, inputs = model(family, attn_implementation="eager").eval(), batch(family, *MARKS["some"])
    if asked == "in the config":
        it.config.output_attentions = True
        wish = {}
    else:
        wish = {"output_attentions": True}
    before = it(**inputs, **wish)
    after = hf.accelerate(it)(**inputs, **wish)
    name = "encoder_attentions" if family == "LED" else "attentions"
    assert torch.equal(before[0], after[0])
    assert len(after[name]) == 2
    assert all(torch.equal(a, b) for a, b in zip(before[name], after[name], strict=True))


def test_a_bigbird_that_turns_to_full_attention_and_back_stays_accelerated() -> None:
    it = hf.accelerate(model("BigBird").eval())
    short, long = batch("BigBird", lengths=(17, 9)), batch("BigBird")
    expected = it(**long)[0]
    full = it(**short)[0]
    assert it.attention_type == "original_full"
    assert torch.equal(hf.restore(copy.deepcopy(it))(**short)[0], full)
    it.set_attention_type("block_sparse")
    assert "computed by longspan" in repr(it)
    assert torch.equal(it(**long)[0], expected)
    hf.restore(it)
    it.set_attention_type("original_full")
    it.set_attention_type("block_sparse")
    assert "longspan" not in repr(it)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_read_in_inference_mode_can_be_trained_with(family: str) -> None:
    it, inputs = model(family), batch(family, *MARKS["many"], lengths=(61, 47))
    expected = results(it, inputs)
    with torch.inference_mode():
        hf.accelerate(it)(**inputs)
    for name, value in results(it, inputs).items():
        close(value, expected[name], name)


def test_random_blocks_leave_numpys_generator_alone() -> None:
    import numpy as np

    it = hf.accelerate(model("BigBird"))
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    it(**batch("BigBird"))
    assert (np.random.get_state()[1] == before).all()  # type: ignore[index]


def test_layers_that_were_replaced_or_are_watched_are_called() -> None:
    class Adapted(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) + 0.1 * x

    it, calls = model("Longformer"), []
    for layer in it.encoder.layer:
        for name in ("query", "value", "key_global"):
            getattr(layer.attention.self, name).__class__ = Adapted
    it.encoder.layer[1].attention.self.value_global.register_forward_hook(lambda *_: calls.append(1))
    agree(it, batch("Longformer", *MARKS["some"]))
    assert len(calls) == 2


def test_hooks_on_the_attention_see_what_they_saw() -> None:
    it, seen = model("Longformer"), []
    it.encoder.layer[0].attention.self.register_forward_hook(lambda _, __, output: seen.append(output[0]))
    agree(it, batch("Longformer", *MARKS["some"]))
    close(seen[1], seen[0])


def test_a_compiled_layer_agrees(engine: str) -> None:
    if engine == "portable":
        pytest.skip("compiling leaves out the attention")
    layer = hf.accelerate(model("Longformer").eval()).encoder.layer[0]
    x, mask = torch.randn(2, 64, 24), torch.zeros(2, 64)
    mask[0, 0], mask[1, 50:] = 1, -1
    masks = mask, mask < 0, mask > 0, True
    compiled: Any = torch.compile(layer, backend="eager")
    with torch.no_grad():
        close(compiled(x, *masks)[0], layer(x, *masks)[0])


def test_other_devices_are_left_to_transformers() -> None:
    layer = hf.accelerate(model("Longformer").to("meta")).encoder.layer[0].attention.self
    mask = torch.zeros(3, 64, device="meta")
    assert layer(torch.empty(3, 64, 24, device="meta"), mask, mask < 0, mask > 0, False)[0].is_meta


def test_a_model_with_nothing_to_swap_is_refused() -> None:
    for it in (peer("Bert", "Model"), nn.Linear(3, 2), "allenai/longformer-base-4096"):
        with pytest.raises(InputError, match=r"`model` must be a model of transformers with LongformerSelf"):
            hf.accelerate(it)  # type: ignore[type-var]
    with pytest.raises(InputError, match="`model` must be accelerated to be restored"):
        hf.restore(model("Longformer"))


@pytest.mark.parametrize("version", ["4.57.6", "5.9.0", "5.23.0.dev0", "6.0.0", "main"])
def test_a_version_that_is_not_known_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    it = model("Longformer")
    monkeypatch.setattr(sys.modules["transformers"], "__version__", version)  # not always `transformers`
    with pytest.raises(
        InputError, match=rf"`transformers` must be of version 5.10 to below 5.23, but is {version}"
    ):
        hf.accelerate(it)
    assert not any(type(module) in known.swaps().values() for module in it.modules())


def test_an_attention_that_is_called_otherwise_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    it = model("BigBird")

    def other(self: Any, hidden_states: Tensor, sinks: Tensor) -> None: ...

    monkeypatch.setattr(type(it.encoder.layer[0].attention.self), "forward", other)
    with pytest.raises(
        InputError, match=r"BigBirdBlockSparseAttention.forward` must take .* takes \(self, hidden_"
    ):
        hf.accelerate(it)
    assert hf.accelerated(it) == 0


def test_an_attention_whose_forward_was_replaced_is_refused() -> None:
    it = model("Longformer")
    layer = it.encoder.layer[1].attention.self
    layer.forward = layer.forward
    with pytest.raises(InputError, match="was replaced in the model"):
        hf.accelerate(it)
    assert hf.accelerated(it) == 0


def test_the_extra_names_the_versions_that_are_known() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    least, most = (".".join(map(str, end)) for end in (known.FROM, known.BEFORE))
    assert project["project"]["optional-dependencies"]["hf"] == [f"transformers>={least},<{most}"]


def test_activations_can_be_swapped_too_and_come_back() -> None:
    model_ = model("BigBird").eval()
    inputs = batch("BigBird")
    with torch.no_grad():
        before = model_(**inputs).last_hidden_state
        swapped = hf.accelerate(model_, activations=True)(**inputs).last_hidden_state
        assert "at longspan's wish" in repr(model_)
        close(swapped, before)
        assert torch.equal(hf.restore(model_)(**inputs).last_hidden_state, before)
    assert "longspan" not in repr(model_)


def test_activations_alone_are_not_enough() -> None:
    config = transformers.BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, hidden_act="gelu_new"
    )
    with pytest.raises(InputError, match="LongformerSelfAttention"):
        hf.accelerate(transformers.BertModel(config), activations=True)
