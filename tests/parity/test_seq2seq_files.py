"""Files of LED, BART and BigBird-Pegasus come back bit by bit, whoever wrote them, and however."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from helpers import task_name
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import CheckpointError
from parity.peers import close
from parity.test_round_trips import read_back, same, save_as_bin
from parity.writers import CLASSES, VARIANTS, call, documents, expected, given, layout_of, pair, peer

EVERY = pytest.mark.parametrize("variant", ["led", "bart", "pegasus"])
BOTH = "ForConditionalGeneration"
COPIES = ("shared.weight", "embed_tokens.weight", "lm_head.weight")


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


def saved(loaded: Any, folder: Path, **options: Any) -> Path:
    save_model(loaded.model, folder, extra=loaded.config, **options)
    return folder


def agree(folder: Path, theirs: Any) -> None:
    """Scores of a folder's model are those of a model of transformers."""
    loaded = load_model(folder)
    assert not loaded.report
    ids, texts = documents(37, end=theirs.config.eos_token_id), documents(9, end=5, seed=2)
    with torch.no_grad():
        wanted = expected(theirs, BOTH, ids, texts)
        close(given(loaded.model, ids, texts, marked=theirs.config.model_type == "led"), wanted)


@pytest.mark.parametrize(
    ("variant", "head"), [(variant, head) for variant, head in CLASSES if "," not in variant or head == BOTH]
)
def test_files_of_every_class_come_back_bit_by_bit(tmp_path: Path, variant: str, head: str) -> None:
    theirs, _ = pair(tmp_path / "theirs", variant, head)
    loaded = load_model(tmp_path / "theirs", "encode" if head == "Model" else None)
    saved(loaded, tmp_path / "ours")
    same(read_back(tmp_path / "ours", type(theirs)), theirs)
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "ours"))
    assert first.keys() == second.keys()
    before, after = (transformers.AutoConfig.from_pretrained(tmp_path / name) for name in ("theirs", "ours"))
    if head == "ForQuestionAnswering":
        before.num_labels = after.num_labels  # their class says itself how many there are
    assert before.to_dict() | {"_name_or_path": ""} == after.to_dict() | {"_name_or_path": ""}


@EVERY
def test_the_bare_model_writes_too_and_is_saved_as_one_that_does(tmp_path: Path, variant: str) -> None:
    theirs = peer(variant, "Model")
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs")
    assert task_name(loaded.model) == "summarize"
    assert not loaded.report
    family = VARIANTS[variant][0]
    found = read_back(saved(loaded, tmp_path / "ours"), getattr(transformers, family + BOTH))
    same(found.base_model, theirs)
    assert torch.equal(found.lm_head.weight, theirs.get_input_embeddings().weight)
    assert not found.final_logits_bias.any()


@EVERY
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision_stays_so(tmp_path: Path, variant: str, dtype: torch.dtype) -> None:
    theirs = peer(variant).to(dtype)
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs")
    assert {value.dtype for value in loaded.model.state_dict().values()} == {dtype}
    same(read_back(saved(loaded, tmp_path / "ours"), type(theirs)), theirs)
    wide = load_model(tmp_path / "theirs", dtype="float32")
    ids, texts = documents(37, end=theirs.config.eos_token_id), documents(9, end=5, seed=2)
    with torch.no_grad():
        wanted = expected(theirs.float(), BOTH, ids, texts)
        close(given(wide.model, ids, texts, marked=variant == "led"), wanted)
        narrow = given(loaded.model, ids, texts, marked=variant == "led").float()
    assert float((narrow - wanted).abs().max() / wanted.abs().max()) < 0.05


@EVERY
@pytest.mark.parametrize("kind", ["sharded", "bin", "sharded bin"])
def test_every_kind_of_file_is_read(tmp_path: Path, variant: str, kind: str) -> None:
    theirs = peer(variant)
    if kind == "sharded":
        theirs.save_pretrained(tmp_path / "theirs", max_shard_size="100KB")
        assert len(list((tmp_path / "theirs").glob("model-*.safetensors"))) > 1
    else:
        theirs.config.architectures = [type(theirs).__name__]
        theirs.config.save_pretrained(tmp_path / "theirs")
        state = {name: value.clone() for name, value in theirs.state_dict().items()}
        assert sum(name.endswith(COPIES) for name in state) == 4  # all copies of the words
        save_as_bin(tmp_path / "theirs", state, shards=2 if kind == "sharded bin" else 1)
    agree(tmp_path / "theirs", theirs)
    saved(load_model(tmp_path / "theirs"), tmp_path / "ours", shard_bytes=100_000)
    assert len(list((tmp_path / "ours").glob("model-*.safetensors"))) > 1
    same(read_back(tmp_path / "ours", type(theirs)), theirs)


def rewritten(folder: Path, **fields: Any) -> dict[str, Any]:
    """The tensors of a folder, whose config gets other fields (None: none)."""
    raw = config_of(folder) | fields
    kept = {name: value for name, value in raw.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept))
    return dict(load_file(folder / "model.safetensors"))


@EVERY
def test_without_a_bias_of_the_scores_there_is_none(tmp_path: Path, variant: str) -> None:
    theirs, _ = pair(tmp_path, variant)
    tensors = rewritten(tmp_path)
    del tensors["final_logits_bias"]
    save_file(tensors, tmp_path / "model.safetensors")
    theirs.final_logits_bias.zero_()
    agree(tmp_path, theirs)


@EVERY
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_the_words_may_be_stored_with_either_side(tmp_path: Path, variant: str, side: str) -> None:
    theirs, _ = pair(tmp_path, variant)
    tensors = rewritten(tmp_path)
    body = theirs.base_model_prefix
    tensors[f"{body}.{side}.embed_tokens.weight"] = tensors.pop(f"{body}.shared.weight")
    save_file(tensors, tmp_path / "model.safetensors")
    agree(tmp_path, theirs)


def untied(variant: str) -> Any:
    """One whose scores have a table of their own, while both sides share their words."""
    theirs = peer(variant, tie_word_embeddings=False)
    with torch.no_grad():
        words = theirs.base_model.shared.weight
        theirs.base_model.encoder.embed_tokens.weight.copy_(words)
        theirs.base_model.decoder.embed_tokens.weight.copy_(words)
    assert not torch.equal(theirs.lm_head.weight, words)
    return theirs


@EVERY
def test_scores_with_a_table_of_their_own_stay_so(tmp_path: Path, variant: str) -> None:
    theirs = untied(variant)
    theirs.save_pretrained(tmp_path / "theirs")
    agree(tmp_path / "theirs", theirs)
    saved(load_model(tmp_path / "theirs"), tmp_path / "ours")
    assert config_of(tmp_path / "ours")["tie_word_embeddings"] is False
    agree(tmp_path / "ours", theirs)
    same(read_back(tmp_path / "ours", type(theirs)), theirs)


@EVERY
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_sides_with_words_of_their_own_are_refused(tmp_path: Path, variant: str, side: str) -> None:
    theirs = untied(variant)
    with torch.no_grad():
        getattr(theirs.base_model, side).embed_tokens.weight[7, 3] += 1.0
    theirs.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=f"{side}.embed_tokens.weight' is not '.*shared.weight'"):
        load_model(tmp_path)


@EVERY
def test_sides_are_compared_where_the_table_of_both_is_absent(tmp_path: Path, variant: str) -> None:
    theirs, _ = pair(tmp_path, variant)
    tensors, body = rewritten(tmp_path), theirs.base_model_prefix
    words = tensors.pop(f"{body}.shared.weight")
    tensors |= {
        f"{body}.encoder.embed_tokens.weight": words,
        f"{body}.decoder.embed_tokens.weight": words + 1,
    }
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match="share the encoder's words"):
        load_model(tmp_path)


@pytest.mark.parametrize("task", ["encode", "answer"])
def test_for_another_task_the_words_of_both_sides_stay_one(tmp_path: Path, task: str) -> None:
    untied("bart").save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs", task)
    saved(loaded, tmp_path / "ours")
    kind = transformers.BartModel if task == "encode" else transformers.BartForQuestionAnswering
    found = read_back(tmp_path / "ours", kind).base_model
    assert found.encoder.embed_tokens.weight is found.decoder.embed_tokens.weight


def test_a_bias_of_the_scores_for_another_vocabulary_is_refused_or_left_out(tmp_path: Path) -> None:
    pair(tmp_path, "led")
    tensors = rewritten(tmp_path) | {"final_logits_bias": torch.ones(1, 99)}
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"'final_logits_bias' has the shape \(1, 99\)"):
        load_model(tmp_path)
    loaded = load_model(tmp_path, ignore_mismatched_sizes=True)
    assert not loaded.model.head.get_buffer("bias").any()


def test_a_led_that_classifies_is_read_though_transformers_has_no_such_class_any_more(tmp_path: Path) -> None:
    theirs = peer("led", "Model")
    theirs.save_pretrained(tmp_path)
    names = {str(number): f"class {number}" for number in range(5)}
    tensors = rewritten(tmp_path, architectures=["LEDForSequenceClassification"], id2label=names)
    dense, out = torch.nn.Linear(24, 24), torch.nn.Linear(24, 5)
    head = {"dense": dense, "out_proj": out}
    tensors = {f"led.{name}": value for name, value in tensors.items()} | {
        f"classification_head.{part}.{name}": value.detach()
        for part, layer in head.items()
        for name, value in layer.named_parameters()
    }
    save_file(tensors, tmp_path / "model.safetensors")
    loaded = load_model(tmp_path)
    assert not loaded.report
    assert loaded.labels == tuple(names.values())
    ids = documents(37, 20, end=2)
    with torch.no_grad():
        last = torch.stack([call(theirs, [one]).last_hidden_state[0, -1] for one in ids])
        found = loaded.model(torch.cat(ids), layout_of(ids, marked=True))
        close(found, out(torch.tanh(dense(last))))
    again = load_model(saved(loaded, tmp_path / "ours"))
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["model_type"] == "led"
    assert all(
        torch.equal(a, b) for a, b in zip(again.model.parameters(), loaded.model.parameters(), strict=True)
    )
