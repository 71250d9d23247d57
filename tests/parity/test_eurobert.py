"""EuroBERT computes what transformers computes, with grouped keys or not, and is saved alike."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.families.eurobert.model import EuroBertConfig
from longspan.families.registry import read_config
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.nn.rope import RopeParameters
from longspan.tasks.registry import build, task_of
from parity.peers import close, compare, hidden, losses, output, padded, pair, peer, same_loss, words

HEADS = ("Model", "ForMaskedLM", "ForSequenceClassification", "ForTokenClassification")
POOLINGS = ("bos", "mean", "late")
GROUPED = {"num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 10}
YARN: dict[str, Any] = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 24,
    "rope_theta": 700.0,
}


def agree(folder: Path, head: str = "Model", n: int = 41, **changes: Any) -> TaskModel:
    """Outputs and gradients of both, on one document."""
    theirs, ours = pair(folder, "EuroBert", head, **changes)
    (ids,) = words(n)
    expected = output(theirs(ids[None]))
    given = hidden(ours)(ids, Layout.packed([n]))
    compare(theirs, ours, given[0] if expected.dim() == 1 else given, expected)
    return ours


@pytest.mark.parametrize("n", [1, 2, 61, 96])
@pytest.mark.parametrize("changes", [{}, GROUPED, {"num_key_value_heads": 1}], ids=str)
def test_the_backbone_agrees_at_any_length(tmp_path: Path, n: int, changes: dict[str, Any]) -> None:
    agree(tmp_path, n=n, **changes)


@pytest.mark.parametrize("head", HEADS[1:])
@pytest.mark.parametrize("biases", [True, False])
def test_every_head_agrees(tmp_path: Path, head: str, biases: bool) -> None:
    ours = agree(tmp_path, head, attention_bias=biases, mlp_bias=biases, **GROUPED)
    assert ours.config.head_size == 10


@pytest.mark.parametrize("pooling", POOLINGS)
def test_packed_documents_are_classified_as_a_padded_batch(tmp_path: Path, pooling: str) -> None:
    theirs, ours = pair(tmp_path, "EuroBert", "ForSequenceClassification", classifier_pooling=pooling)
    lengths, ids = (19, 50, 7), words(19, 50, 7)
    real = padded([torch.ones(n, dtype=torch.long) for n in lengths], 0)
    expected = theirs(padded(ids, 0), attention_mask=real).logits
    compare(theirs, ours, ours(torch.cat(ids), Layout.packed(lengths)), expected)
    plan = ours.plan(Layout.packed(lengths))  # as compiled graphs take it
    close(ours(torch.cat(ids), plan).detach(), expected.detach())


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_act": "gelu"},
        {"rms_norm_eps": 1e-2},
        {"num_hidden_layers": 1},
        {"rope_parameters": {"rope_theta": 300.0, "rope_type": "default"}},
        {"rope_parameters": YARN},
        {"rope_parameters": {**YARN, "truncate": False, "beta_fast": 4.0}},
        {"rope_parameters": {"rope_type": "linear", "factor": 3.0, "rope_theta": 700.0}},
        {"rope_parameters": {**YARN, "rope_type": "llama3", "low_freq_factor": 1.0, "high_freq_factor": 3.0}},
        {"rope_parameters": {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 700.0}},
    ],
    ids=str,
)
def test_options_agree(tmp_path: Path, changes: dict[str, Any]) -> None:
    agree(tmp_path, n=61, **{"max_position_embeddings": 48} | changes)


@pytest.mark.parametrize("head", HEADS[1:])
def test_losses_agree(tmp_path: Path, head: str) -> None:
    theirs, ours = pair(tmp_path, "EuroBert", head, num_labels=3)
    same_loss(theirs, ours, *losses(theirs, ours))


@pytest.mark.parametrize("tied", [True, False])
def test_the_decoder_of_words_may_be_the_embeddings(tmp_path: Path, tied: bool) -> None:
    ours = agree(tmp_path / "theirs", "ForMaskedLM", tie_word_embeddings=tied)
    assert (ours.get_parameter("head.decoder.weight") is ours.backbone.word_embeddings.weight) is tied
    save_model(ours, tmp_path / "ours")
    again = transformers.EuroBertForMaskedLM.from_pretrained(tmp_path / "ours")
    assert (again.lm_head.weight is again.model.embed_tokens.weight) is tied


def test_a_decoder_that_no_file_holds_is_drawn_anew(tmp_path: Path) -> None:
    peer("EuroBert", "Model").save_pretrained(tmp_path)
    loaded = load_model(tmp_path, "fill")
    assert loaded.report.missing == ("lm_head.weight",)
    assert "drawn anew" in loaded.notes[0]
    words = loaded.model.backbone.word_embeddings.weight
    assert not torch.equal(loaded.model.get_parameter("head.decoder.weight"), words)


@pytest.mark.parametrize("changes", [{}, {"rope_scaling": YARN}, {"rope_scaling": None}], ids=str)
def test_files_of_before_transformers_had_it_are_read_alike(tmp_path: Path, changes: dict[str, Any]) -> None:
    """The authors' own code wrote `rope_theta` beside the other fields."""
    peer("EuroBert", "Model").save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    stated = json.loads(path.read_text())
    del stated["rope_parameters"]
    path.write_text(json.dumps(stated | {"rope_theta": 250_000.0} | changes))
    theirs, ours = transformers.AutoModel.from_pretrained(tmp_path).eval(), load_model(tmp_path).model
    (ids,) = words(61)
    compare(theirs, ours, ours.backbone(ids, Layout.packed([61])), output(theirs(ids[None])))


@pytest.mark.parametrize("head", HEADS)
def test_a_model_of_ours_is_found_by_transformers(tmp_path: Path, head: str) -> None:
    sizes: dict[str, Any] = {"vocab_size": 83, "width": 24, "layers": 2, "heads": 6, "feed_forward": 40}
    grouped: dict[str, Any] = {"kv_heads": 2, "head_dim": 10, "classifier_pooling": "mean"}
    config = EuroBertConfig(**sizes, **grouped, positions=96, rope=RopeParameters(**YARN))
    ours = build(config, task_of(head).name, labels=2).eval()
    save_model(ours, tmp_path)
    kind = getattr(transformers, f"EuroBert{head}")
    theirs, complaints = kind.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(complaints.values()), complaints
    (ids,) = words(61)
    expected, given = output(theirs.eval()(ids[None])), hidden(ours)(ids, Layout.packed([61]))
    close((given[0] if expected.dim() == 1 else given).detach(), expected.detach())
    assert load_model(tmp_path).model.config == config


def test_angles_that_transformers_has_no_words_for_are_a_type_of_our_own(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"vocab_size": 83, "width": 24, "layers": 2, "heads": 6, "feed_forward": 40}
    config = EuroBertConfig(**sizes, kv_heads=3, rope=RopeParameters(rope_type="ntk", factor=2.0))
    ours = build(config, "fill").eval()
    save_model(ours, tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.config["model_type"] == "longspan-eurobert"
    assert loaded.model.config == config
    (ids,) = words(50)
    close(loaded.model(ids, Layout.packed([50])).detach(), ours(ids, Layout.packed([50])).detach())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_key_value_heads": 5}, "`num_key_value_heads` must be a divisor of the 12 heads"),
        ({"num_key_value_heads": 1.5}, "`num_key_value_heads` must be a whole number"),
        ({"head_dim": 7}, "`head_dim` must be an even number"),
        ({"classifier_pooling": "cls"}, "`classifier_pooling` must be one of bos, mean, late"),
        ({"hidden_act": ["silu"]}, "`hidden_act` must be a word"),
        ({"mlp_bias": "no"}, "`mlp_bias` must be true or false"),
        ({"rms_norm_eps": -1}, "`rms_norm_eps` must be from"),
        ({"rope_parameters": [1]}, "`rope_parameters` must be fields of rotary positions"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "`rope_parameters.factor` must be stated"),
        ({"rope_theta": -1}, "`rope_theta` must be from"),
    ],
)
def test_a_config_that_cannot_be_read_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_config({"model_type": "eurobert", **changes})


def test_a_task_that_transformers_has_no_class_for_is_refused(tmp_path: Path) -> None:
    peer("EuroBert", "Model").save_pretrained(tmp_path)
    with pytest.raises(InputError, match=r"`task` must be one of .* for EuroBert, but is 'answer'"):
        load_model(tmp_path, "answer")
