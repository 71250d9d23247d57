"""Encoders with rotary positions and norms behind the blocks compute what transformers computes."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.layout import Layout
from longspan.pipeline.packing import Batch
from longspan.tasks import classify, fill, tag
from parity.peers import HEADS, close, compare, hidden, output, padded, pair, peer, same_gradients, words

FAMILIES = ("NomicBert", "Gte", "JinaEmbeddingsV3")
CLASSES = [(family, head) for family in FAMILIES for head in HEADS if hasattr(transformers, family + head)]
LOSSES: dict[str, Any] = {
    "ForSequenceClassification": classify.loss,
    "ForTokenClassification": tag.loss,
}


@pytest.mark.parametrize("n", [1, 2, 41, 90])
@pytest.mark.parametrize(("family", "head"), CLASSES)
def test_every_head_agrees(tmp_path: Path, family: str, head: str, n: int) -> None:
    theirs, ours = pair(tmp_path, family, head)
    (ids,) = words(n)
    expected = output(theirs(ids[None]))
    given = hidden(ours)(ids, Layout.packed([n]))
    compare(theirs, ours, given[0] if expected.dim() == 1 else given, expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_documents_packed_end_to_end_agree_with_a_padded_batch(tmp_path: Path, family: str) -> None:
    theirs, ours = pair(tmp_path, family, "ForMaskedLM")
    lengths = (19, 50, 7)
    ids = words(*lengths)
    batch = padded(ids, theirs.config.pad_token_id)
    real = padded([torch.ones(n, dtype=torch.bool) for n in lengths], 0)
    expected = theirs(batch, attention_mask=real.long()).logits[real]
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed(lengths)), expected)


@pytest.mark.parametrize(("family", "head"), [one for one in CLASSES if one[1] in LOSSES])
def test_losses_agree(tmp_path: Path, family: str, head: str) -> None:
    theirs, ours = pair(tmp_path, family, head, num_labels=5)
    (ids,) = words(23)
    whole = head == "ForSequenceClassification"
    labels = torch.tensor([3]) if whole else torch.arange(23) % 5
    if not whole:
        labels[::3] = -100
    expected = theirs(ids[None], labels=labels if whole else labels[None]).loss
    found = LOSSES[head](ours(ids, Layout.packed([23])), labels)
    close(found.detach(), expected.detach(), "loss")
    same_gradients(theirs, ours, found, expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_of_masked_words_agree(tmp_path: Path, family: str) -> None:
    theirs, ours = pair(tmp_path, family, "ForMaskedLM")
    (ids,), labels = words(23), torch.arange(23)
    labels[::3] = -100
    expected = theirs(ids[None], labels=labels[None]).loss
    found = fill.loss(ours, Batch(ids, Layout.packed([23]), None, (0,)), labels)
    close(found.detach(), expected.detach(), "loss")
    same_gradients(theirs, ours, found, expected)


@pytest.mark.parametrize("scaling", ["linear", "dynamic", "yarn"])
@pytest.mark.parametrize("family", FAMILIES)
def test_scaled_angles_agree(tmp_path: Path, family: str, scaling: str) -> None:
    rope = {"rope_type": scaling, "rope_theta": 500.0, "factor": 2.0}
    theirs, ours = pair(tmp_path, family, "Model", rope_parameters=rope, max_position_embeddings=30)
    for n in (20, 41):
        (ids,) = words(n)
        with torch.no_grad():
            close(ours.backbone(ids, Layout.packed([n])), output(theirs(ids[None])))


@pytest.mark.parametrize(("family", "head"), CLASSES)
def test_files_by_the_names_of_transformers_modules_are_read_and_saved_by_the_authors(
    tmp_path: Path, family: str, head: str
) -> None:
    theirs = peer(family, head)
    theirs.save_pretrained(tmp_path / "authors")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "config.json").write_text((tmp_path / "authors" / "config.json").read_text())
    tied = getattr(theirs, "_tied_weights_keys", None) or {}
    state = {name: tensor.clone() for name, tensor in theirs.state_dict().items() if name not in tied}
    save_file(state, tmp_path / "modules" / "model.safetensors")
    loaded = load_model(tmp_path / "modules")
    assert not loaded.report
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    found, wanted = (load_file(tmp_path / name / "model.safetensors") for name in ("ours", "authors"))
    assert found.keys() == wanted.keys()
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)
