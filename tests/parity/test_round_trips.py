"""What transformers saves, we load and save again, and transformers reads the same bits back."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.registry import FAMILIES
from longspan.layout import Layout
from longspan.tasks.registry import build
from parity.peers import HEADS, OF_FAMILY, peer, words

KNOWN = {family.name: family for family in FAMILIES}
CLASSES = [(family, head) for family in OF_FAMILY for head in HEADS if head in KNOWN[family].heads]
CLASSES += [("BigBird", "ForPreTraining"), ("BigBird", "ForCausalLM"), ("Bert", "ForPreTraining")]
AUTO = {
    "encode": "AutoModel",
    "fill": "AutoModelForMaskedLM",
    "classify": "AutoModelForSequenceClassification",
    "tag": "AutoModelForTokenClassification",
    "answer": "AutoModelForQuestionAnswering",
    "choose": "AutoModelForMultipleChoice",
}


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def read_back(folder: Path, kind: Any) -> Any:
    """The model as transformers loads it, with nothing missing and nothing left over."""
    model, complaints = kind.from_pretrained(folder, output_loading_info=True)
    assert not any(complaints.values()), complaints
    return model


def same(one: Any, other: Any) -> None:
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize(("family", "head"), CLASSES)
def test_files_of_every_class_come_back_bit_by_bit(tmp_path: Path, family: str, head: str) -> None:
    theirs = (
        peer(family, head, is_decoder=head == "ForCausalLM") if family == "BigBird" else peer(family, head)
    )
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = load_model(tmp_path / "theirs")
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    same(read_back(tmp_path / "ours", type(theirs)), theirs)
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "ours"))
    assert first.keys() == second.keys()
    before, after = (json.loads((tmp_path / name / "config.json").read_text()) for name in ("theirs", "ours"))
    if head == "ForCausalLM":  # with blocks theirs is not causal; ours is, and says so
        before["attention_type"] = "original_full"
    assert {name: after.get(name) for name in before} == before


@pytest.mark.parametrize("kind", ["sharded", "bin", "sharded bin"])
def test_every_kind_of_file_is_read(tmp_path: Path, kind: str) -> None:
    theirs = peer("Longformer", "ForMaskedLM")
    if kind == "sharded":
        theirs.save_pretrained(tmp_path, max_shard_size="20KB")
        assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    else:
        theirs.config.architectures = ["LongformerForMaskedLM"]
        theirs.config.save_pretrained(tmp_path)
        save_as_bin(tmp_path, theirs.state_dict(), shards=2 if kind == "sharded bin" else 1)
    loaded = load_model(tmp_path)
    assert not loaded.report
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config, shard_bytes=20_000)
    assert len(list((tmp_path / "ours").glob("model-*.safetensors"))) > 1
    same(read_back(tmp_path / "ours", type(theirs)), theirs)


def save_as_bin(folder: Path, state: dict[str, Any], *, shards: int) -> None:
    names = [f"pytorch_model-{i + 1:05d}-of-{shards:05d}.bin" for i in range(shards)]
    if shards == 1:
        torch.save(state, folder / "pytorch_model.bin")
        return
    home = {key: names[i % shards] for i, key in enumerate(state)}
    for name in names:
        torch.save({key: tensor for key, tensor in state.items() if home[key] == name}, folder / name)
    index = {"metadata": {"total_size": 0}, "weight_map": home}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))


SMALL: dict[str, Any] = {"vocab_size": 83, "width": 24, "layers": 2, "heads": 3, "feed_forward": 40}


@pytest.mark.parametrize("task", AUTO)
@pytest.mark.parametrize(
    "config",
    [
        LongformerConfig(**SMALL, positions=96, radius=(4, 2)),
        BigBirdConfig(**SMALL, positions=96, block=4, random_blocks=1),
    ],
    ids=["longformer", "bigbird"],
)
def test_a_model_of_ours_is_found_by_the_auto_classes(
    tmp_path: Path, config: EncoderConfig, task: str
) -> None:
    options: dict[str, Any] = {"pooler": True} if task == "encode" else {"labels": 5}
    ours = build(config, task, **options).eval()
    save_model(ours, tmp_path)
    theirs = read_back(tmp_path, getattr(transformers, AUTO[task])).eval()
    if task in ("encode", "choose", "answer"):  # their outputs are compared in the tests of the families
        return
    (ids,) = words(50)
    mine, answer = ours(ids, Layout.packed([50])), theirs(ids[None]).logits[0]
    if isinstance(config, LongformerConfig) and task == "classify":  # there the first token is made global
        mine = ours(ids, Layout.packed([50], marked=[[0]]))
    torch.testing.assert_close(mine[0] if task == "classify" else mine, answer, rtol=0, atol=1e-5)


def test_a_decoder_that_is_not_tied_stays_so(tmp_path: Path) -> None:
    for family in ("Longformer", "BigBird"):
        theirs = peer(family, "ForMaskedLM", tie_word_embeddings=False)
        theirs.save_pretrained(tmp_path / family)
        loaded = load_model(tmp_path / family)
        assert not loaded.report
        save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
        found = read_back(tmp_path / "ours", type(theirs))
        (ids,) = words(20)
        assert torch.equal(found(ids[None]).logits, theirs(ids[None]).logits)
        assert not torch.equal(found.get_output_embeddings().weight, found.get_input_embeddings().weight)
