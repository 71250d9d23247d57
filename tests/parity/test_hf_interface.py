"""With attn_implementation="longspan" models of transformers compute what they compute with "sdpa"."""

import copy
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers
from torch import Tensor, nn
from transformers import DynamicCache, masking_utils

from longspan import hf
from longspan.errors import InputError
from longspan.hf.interface import attend, mask
from longspan.hf.pattern_mask import PatternMask
from parity.peers import close, padded, words

SIZES: dict[str, Any] = {
    "vocab_size": 83,
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 40,
    **{f"{name}_token_id": i for i, name in enumerate(("pad", "bos", "eos", "mask", "cls", "sep"))},
}
MIXED = ["sliding_attention", "full_attention", "sliding_attention"]
GROUPED: dict[str, Any] = {"num_key_value_heads": 2, "head_dim": 8}
Inputs = dict[str, Any]
ENCODERS: dict[str, dict[str, Any]] = {
    "ModernBert": {"local_attention": 14, "global_attn_every_n_layers": 2},
    "EuroBert": {"num_key_value_heads": 2},
    "NomicBert": {},
    "Gte": {},
    "Bert": {},
}
DECODERS: dict[str, dict[str, Any]] = {
    "Gemma3": {**GROUPED, "sliding_window": 9, "layer_types": MIXED},
    "Gemma2": {**GROUPED, "sliding_window": 9, "attn_logit_softcapping": 0.4, "layer_types": MIXED},
    "Mistral": {**GROUPED, "sliding_window": 7},
    "Qwen3": GROUPED,
    "Llama": {"num_key_value_heads": 3},
}
CONFIGS = {"Gemma3": "Gemma3TextConfig"}
MODELS = {"Gemma3": "Gemma3TextModel"}
BOTH = {**ENCODERS, **DECODERS}
HEADS = (
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)


def model(family: str, head: str = "Model", implementation: str = "sdpa", **changes: Any) -> Any:
    """A tiny model with weights that are nowhere trivial, in training mode without dropout."""
    kind = getattr(transformers, CONFIGS.get(family, f"{family}Config"))
    config = kind(**{**SIZES, **BOTH[family], **changes}, attn_implementation=implementation)
    torch.manual_seed(0)
    it = getattr(
        transformers, MODELS.get(family, "") if head == "Model" and family in MODELS else family + head
    )(config)
    with torch.no_grad():
        for parameter in it.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    for module in it.modules():
        if isinstance(module, nn.Dropout) and not changes:
            module.p = 0.0
    return it.train()


def batch(side: str = "right", lengths: tuple[int, ...] = (37, 21, 5)) -> Inputs:
    """A ragged batch, padded on one side."""
    documents = words(*lengths)
    ids = padded(documents, 0)
    if side == "left":
        ids = padded([document.flip(0) for document in documents], 0).flip(1)
    return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def oracle(it: Any) -> str:
    """Whose attention ours must equal; torch's leaves out the cap of scores."""
    return "eager" if getattr(it.config, "attn_logit_softcapping", None) else "sdpa"


def results(it: Any, inputs: Inputs, real: Tensor | None = None) -> dict[str, Tensor]:
    """The first output, at `real` positions, and the gradients of a random sum of it."""
    it.zero_grad()
    output = it(**inputs)[0]
    output = output if real is None else output[real]
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(2))
    (output * weights).sum().backward()
    gradients = {name: p.grad.clone() for name, p in it.named_parameters() if p.grad is not None}
    return {"output": output.detach()} | gradients


def agree(it: Any, inputs: Inputs, real: Tensor | None = None) -> None:
    """Outputs and gradients with the oracle's attention, and with ours."""
    it.set_attn_implementation(oracle(it))
    expected = results(it, inputs, real)
    it.set_attn_implementation("longspan")
    found = results(it, inputs, real)
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        close(found[name], value, name)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", BOTH)
def test_padded_batches_agree_at_real_positions(family: str, side: str) -> None:
    inputs = batch(side)
    agree(model(family), inputs, inputs["attention_mask"].bool())


@pytest.mark.parametrize("family", BOTH)
def test_unpadded_batches_agree(family: str) -> None:
    agree(model(family), {"input_ids": torch.stack(words(70, 70))})


@pytest.mark.parametrize("family", ["Mistral", "Qwen3", "Gemma3"])
def test_packed_sequences_agree(family: str) -> None:
    positions = torch.stack([torch.cat([torch.arange(n) for n in ns]) for ns in ((30, 1, 9), (11, 29))])
    inputs: Inputs = {"input_ids": torch.stack(words(40, 40)), "position_ids": positions, "use_cache": False}
    agree(model(family), inputs)
    whole = model(family, implementation="longspan")(**inputs)[0]
    alone = model(family, implementation="longspan")(inputs["input_ids"][:1, :30])[0]
    close(whole[:1, :30], alone)


def test_a_bidirectional_decoder_agrees() -> None:
    it = model("Gemma3", use_bidirectional_attention=True)
    inputs = batch()
    agree(it, inputs, inputs["attention_mask"].bool())
    changed = copy.deepcopy(inputs)
    changed["input_ids"][0, 8] = 83 - changed["input_ids"][0, 8]
    assert not torch.equal(it(**inputs)[0][0, 6], it(**changed)[0][0, 6])


@pytest.mark.parametrize("head", HEADS)
def test_heads_and_losses_agree(head: str) -> None:
    it, inputs = model("ModernBert", head, deterministic_flash_attn=False), batch()
    labels = {"ForMaskedLM": inputs["input_ids"], "ForTokenClassification": inputs["input_ids"] % 2}
    if head == "ForQuestionAnswering":
        inputs |= {"start_positions": torch.tensor([3, 4, 1]), "end_positions": torch.tensor([30, 9, 2])}
    else:
        inputs["labels"] = labels.get(head, torch.tensor([0, 1, 1]))
    if head == "ForMultipleChoice":
        inputs = {name: value[None] for name, value in inputs.items()} | {"labels": torch.tensor([1])}
    agree(it.eval(), inputs)


@pytest.mark.parametrize("family", ["Mistral", "Gemma3"])
def test_causal_losses_agree(family: str) -> None:
    inputs = batch()
    labels = inputs["input_ids"].masked_fill(inputs["attention_mask"] == 0, -100)
    agree(model(family, "ForCausalLM"), {**inputs, "labels": labels})


GENERATION: dict[str, dict[str, Any]] = {
    "greedy": {},
    "beams": {"num_beams": 3},
    "without a cache": {"use_cache": False},
    "static cache": {"cache_implementation": "static"},
    "prefill in chunks": {"prefill_chunk_size": 5},
}


@pytest.mark.parametrize("way", GENERATION)
@pytest.mark.parametrize("family", DECODERS)
def test_generated_tokens_agree(family: str, way: str, engine: str) -> None:
    if engine == "portable" and way != "greedy":
        pytest.skip("one way is enough to see that the backends agree")
    it = model(family, "ForCausalLM").eval()
    it.generation_config.eos_token_id = None
    inputs = batch("left", (17, 9, 4))

    def tokens(implementation: str) -> Tensor:
        it.set_attn_implementation(implementation)
        found = it.generate(**inputs, max_new_tokens=14, do_sample=False, **GENERATION[way])
        assert isinstance(found, Tensor)
        return found

    expected = tokens(oracle(it))
    assert expected[:, 17:].unique().numel() > 3
    assert torch.equal(tokens("longspan"), expected)


@pytest.mark.parametrize("family", ["Gemma3", "Gemma2", "Mistral"])
def test_several_tokens_after_a_cache_agree(family: str) -> None:
    it, (text,) = model(family).eval(), words(41)
    states = []
    for implementation in (oracle(it), "longspan"):
        it.set_attn_implementation(implementation)
        cache = DynamicCache(config=it.config)
        with torch.no_grad():
            parts = [it(part[None], past_key_values=cache)[0] for part in text.split([23, 1, 5, 1, 11])]
        states.append(torch.cat(parts, 1))
    with torch.no_grad():
        states.append(it(text[None])[0])
    close(states[1], states[0])
    close(states[2], states[0])


@pytest.mark.parametrize("family", ["ModernBert", "Mistral"])
def test_a_checkpointed_model_agrees(family: str) -> None:
    it = model(family)
    it.gradient_checkpointing_enable()
    agree(it, {**batch(), **({"use_cache": False} if family == "Mistral" else {})})


def test_dropout_follows_the_seed_also_when_checkpointed() -> None:
    it, inputs = model("ModernBert", implementation="longspan", attention_dropout=0.3), batch()

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


def test_dropout_has_the_mean_and_spread_of_torch(engine: str) -> None:
    if engine == "portable":
        pytest.skip("which pairs are dropped does not depend on the backend")
    q, k, v = torch.randn(3, 1, 2, 24, 8).expand(-1, 400, -1, -1, -1)

    def draws(implementation: str) -> Tensor:
        call = transformers.AttentionInterface()[implementation]
        output: Tensor = call(nn.Identity().train(), q, k, v, None, dropout=0.3, is_causal=False)[0]
        return output

    theirs, ours = draws("sdpa"), draws("longspan")
    sure = (theirs.var(0) / 200).sqrt()
    assert ((ours - theirs).mean(0).abs() < 5.5 * sure).all()
    assert abs(float(ours.var(0).sum() / theirs.var(0).sum()) - 1) < 0.05


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16], ids=str)
def test_other_types_are_not_farther_from_float32_than_torch(dtype: torch.dtype) -> None:
    it, inputs = model("Gemma3").eval(), batch()
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        exact = it.float()(**inputs)[0][real]
        it.to(dtype)
        theirs = it(**inputs)[0][real]
        it.set_attn_implementation("longspan")
        ours = it(**inputs)[0][real]
    assert ours.dtype == dtype
    far = torch.finfo(torch.float32 if dtype == torch.float64 else dtype).eps * exact.abs().max()
    assert (ours - exact).abs().max() <= 2 * (theirs - exact).abs().max() + far


def test_autocast_is_obeyed() -> None:
    it, inputs = model("Qwen3"), batch()
    with torch.autocast("cpu", torch.bfloat16):
        theirs = it(**inputs)[0]
        it.set_attn_implementation("longspan")
        ours = it(**inputs)[0]
    assert ours.dtype == theirs.dtype
    assert (ours - theirs)[inputs["attention_mask"].bool()].abs().max() < 0.2


def test_values_of_another_size_than_queries_agree() -> None:
    q, k = torch.randn(2, 2, 3, 19, 8)
    for size in (5, 11):
        v = torch.randn(2, 3, 19, size)
        close(attend(nn.Identity(), q, k, v, None)[0], _torch(q, k, v, is_causal=True))


def _torch(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    return nn.functional.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2)


def test_no_mask_means_what_it_means_to_torch() -> None:
    q, k, v = torch.randn(2, 3, 9, 8), *torch.randn(2, 2, 3, 13, 8)
    close(attend(nn.Identity(), q, k, v, None, is_causal=False)[0], _torch(q, k, v))
    close(attend(nn.Identity(), q, k, v, None)[0], _torch(q, k[:, :, :9], v[:, :, :9], is_causal=True))
    close(attend(nn.Identity(), q[:, :, :1], k, v, None)[0], _torch(q[:, :, :1], k, v))


def test_a_row_that_sees_nothing_is_zero_and_has_no_gradient() -> None:
    it, inputs = model("NomicBert", implementation="longspan"), batch(lengths=(9, 3))
    inputs["attention_mask"][1] = 0
    found = results(it, inputs)
    assert all(value.isfinite().all() for value in found.values())


def test_masks_of_four_dimensions_are_left_to_torch() -> None:
    it, inputs = model("Llama").eval(), batch(lengths=(12, 12))
    allowed = torch.rand(2, 1, 12, 12, generator=torch.Generator().manual_seed(3)) < 0.7
    inputs["attention_mask"] = allowed | torch.eye(12, dtype=torch.bool)
    expected = it(**inputs)[0]
    it.set_attn_implementation("longspan")
    assert torch.equal(it(**inputs)[0], expected)


def test_a_compiled_model_agrees(engine: str) -> None:
    if engine == "portable":
        pytest.skip("compiling leaves out the attention")
    it, inputs = model("Mistral", implementation="longspan", num_hidden_layers=1).eval(), batch()
    compiled: Any = torch.compile(it, backend="eager")
    with torch.no_grad():
        for given in (inputs, batch("left"), batch(lengths=(50,))):
            close(compiled(**given)[0], it(**given)[0])


def test_an_exported_model_has_torchs_attention() -> None:
    it = model("Llama", implementation="longspan", num_hidden_layers=1, use_cache=False).eval()
    ids = torch.stack(words(12, 12))
    program = torch.export.export(it, (), {"input_ids": ids}, strict=False)
    with torch.no_grad():
        close(program.module()(input_ids=ids)[0], it(input_ids=ids)[0])
    assert "scaled_dot_product_attention" in str(program.graph)


def test_other_devices_are_left_to_torch() -> None:
    it = model("Mistral", implementation="longspan").to("meta")
    inputs = {name: value.to("meta") for name, value in batch().items()}
    assert it(**inputs, use_cache=False)[0].is_meta


def test_files_name_no_attention_and_auto_classes_take_ours(tmp_path: Path) -> None:
    it, inputs = model("ModernBert", "ForMaskedLM").eval(), batch()
    it.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path, attn_implementation="longspan")
    assert loaded.config._attn_implementation == "longspan"
    real = inputs["attention_mask"].bool()
    with torch.no_grad():
        close(loaded(**inputs)[0][real], it(**inputs)[0][real])
    loaded.save_pretrained(tmp_path / "again")
    assert "longspan" not in (tmp_path / "again" / "config.json").read_text()


def test_pipelines_agree() -> None:
    table = {"[PAD]": 0, **{f"w{i}": i for i in range(1, 83)}}
    words_of = tokenizers.Tokenizer(tokenizers.models.WordLevel(table, unk_token="w1"))
    words_of.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words_of, pad_token="[PAD]")
    texts = [" ".join(f"w{i % 80 + 1}" for i in range(n)) for n in (30, 11)]
    found = []
    for implementation in ("sdpa", "longspan"):
        it = model("ModernBert", "ForSequenceClassification", implementation).eval()
        run = transformers.pipeline("text-classification", model=it, tokenizer=tokenizer, device="cpu")
        found.append(torch.tensor([answer["score"] for answer in run(texts, batch_size=2)]))
    close(found[1], found[0])


def test_a_model_learns_the_same() -> None:
    losses = []
    for implementation in ("sdpa", "longspan"):
        it = model("ModernBert", "ForSequenceClassification", implementation, deterministic_flash_attn=False)
        optimizer = torch.optim.AdamW(it.parameters(), lr=1e-3)
        for module in it.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        steps = []
        for _ in range(5):
            loss = it(**batch(), labels=torch.tensor([0, 1, 1])).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            steps.append(loss.detach())
        losses.append(torch.stack(steps))
    close(losses[1], losses[0])


class Largest(torch.utils._python_dispatch.TorchDispatchMode):
    """The largest tensor that any operation makes."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numel = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        for x in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(x, Tensor):
                self.numel = max(self.numel, x.numel())
        return made


@pytest.mark.parametrize("family", ["ModernBert", "Mistral"])
def test_no_mask_of_all_pairs_is_ever_made(family: str, engine: str) -> None:
    if engine == "portable":
        pytest.skip("the portable backend has tiles of its own")
    n = 8192
    sizes: dict[str, Any] = {
        "num_hidden_layers": 2 if family == "ModernBert" else 1,
        "max_position_embeddings": n,
    }
    it = model(family, implementation="longspan", **sizes).eval()
    ids = torch.stack(words(n))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    inputs["attention_mask"][0, -100:] = 0
    with torch.no_grad(), Largest() as largest:
        it(**inputs)
    assert largest.numel < 200 * n
    with Largest() as largest:
        masking_utils.sdpa_mask(1, 1024, 1024, allow_is_causal_skip=False)
    assert largest.numel == 1024**2


def test_the_layers_of_a_call_and_equal_calls_share_their_plans() -> None:
    sizes: dict[str, Any] = {"batch_size": 2, "q_length": 30, "kv_length": 30, "device": "cpu"}
    given = torch.ones(2, 30, dtype=torch.bool)
    given[1, 9:] = False
    first, second = (mask(**sizes, attention_mask=given.clone()) for _ in range(2))
    assert isinstance(first, PatternMask)
    assert isinstance(second, PatternMask)
    assert first.plan(3) is first.plan(3) is second.plan(3)
    assert first.shape == (2, 1, 30, 30)


def chunked() -> Any:
    return masking_utils.chunked_causal_mask_function(4, torch.zeros(2, dtype=torch.long))


def blocks() -> Any:
    overlay = masking_utils.blockwise_overlay(torch.zeros(2, 30, dtype=torch.long))
    return masking_utils.or_masks(masking_utils.causal_mask_function, overlay)


def lied() -> Any:
    torch = type("torch", (), {"tensor": lambda *_, **__: None, "bool": None})
    scope: dict[str, Any] = {"torch": torch}
    exec("def make():\n    return lambda *args: torch.tensor(True, dtype=torch.bool)", scope)
    return scope["make"]()


@pytest.mark.parametrize(
    "function",
    [
        chunked(),
        blocks(),
        lied(),
        lambda *args: torch.tensor(False, dtype=torch.bool),
        lambda b, h, q, k: k <= q,
        masking_utils.padding_mask_function(torch.ones(2, 30, dtype=torch.bool)),
        masking_utils.sliding_window_causal_mask_function(0),
        torch.ge,
    ],
    ids=lambda function: getattr(function, "__qualname__", "builtin"),
)
def test_a_mask_function_that_is_not_known_is_refused(function: Any) -> None:
    with pytest.raises(
        InputError, match=r"`mask_function` must be causal or bidirectional.*=\"sdpa\" for this"
    ) as error:
        mask(2, 30, 30, mask_function=masking_utils.and_masks(masking_utils.causal_mask_function, function))
    assert "which Longspan does not compute" in str(error.value)


@pytest.mark.parametrize("option", ["s_aux", "position_bias", "head_mask", "block_indices"])
def test_options_that_change_the_result_are_refused(option: str) -> None:
    x, options = torch.randn(1, 2, 5, 8), dict[str, Any]({option: torch.ones(2)})
    with pytest.raises(InputError, match=rf"`{option}` must be None, but is given.*\"eager\""):
        attend(nn.Identity(), x, x, x, None, **options)


def test_a_cap_where_torch_would_compute_is_refused() -> None:
    x = torch.randn(1, 2, 5, 8)
    with pytest.raises(InputError, match="`softcap` must be None with a mask of 4 dimensions"):
        attend(nn.Identity(), x, x, x, torch.ones(1, 1, 5, 5, dtype=torch.bool), softcap=2.0)


def test_a_cap_changes_the_result() -> None:
    it, inputs = model("Gemma2").eval(), batch(lengths=(20,))
    with torch.no_grad():
        without = it(**inputs)[0]
        it.set_attn_implementation("longspan")
        assert (it(**inputs)[0] - without).abs().max() > 1e-3


def test_probabilities_are_left_out_with_a_warning_as_sdpa_does(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr("longspan.hf.interface.log.warning_once", said.append)
    found = model("ModernBert", implementation="longspan")(**batch(), output_attentions=True)
    wanted = model("ModernBert", implementation="sdpa")(**batch(), output_attentions=True)
    assert found.attentions == wanted.attentions
    assert not any(part is not None for part in found.attentions)
    assert 'there are no attentions. Use attn_implementation="eager"' in said[0]


def test_a_mask_of_other_sizes_is_refused() -> None:
    x = torch.randn(1, 2, 5, 8)
    with pytest.raises(InputError, match=r"`attention_mask` must be of shape \(1, 1, 5, 5\)"):
        attend(nn.Identity(), x, x, x, mask(1, 5, 6))
    with pytest.raises(InputError, match=r"`attention_mask` must be of shape \(batch, tokens\)"):
        mask(1, 5, 5, attention_mask=torch.ones(1, 1, 5, dtype=torch.bool))


def test_a_model_that_cuts_its_masks_is_not_served_silently() -> None:
    made: Any = mask(1, 5, 5)
    for change in (lambda: made[..., :3], lambda: torch.cat([made, made]), lambda: torch.ones(5, 5) + made):
        with pytest.raises(InputError, match="`attention_mask` must be passed on as it was made"):
            change()


def test_other_models_learn_of_the_name() -> None:
    with pytest.raises(InputError, match=r"may take it by model.set_attn_implementation\(\"longspan\"\)"):
        hf.accelerate(model("ModernBert"))
