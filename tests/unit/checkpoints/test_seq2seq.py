"""Models with a decoder that only Longspan has words for come back as they were, and bad configs are told."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from conformance.conftest import one_thread
from helpers import WRITING, task_name
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.etc.model import EtcConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.mpnet.model import MPNetConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.families.stitched.model import StitchedConfig
from longspan.layout import Layout
from longspan.tasks.registry import build
from unit.families.tiny import unsettle

__all__ = ["one_thread"]
SMALL: dict[str, Any] = {"vocab_size": 53, "width": 24, "layers": 2, "heads": 3, "feed_forward": 40}
ENCODERS: dict[str, EncoderConfig] = {
    "poolingformer": PoolingformerConfig(**SMALL, radius=5, wide_radius=16, token_types=0, two_level=(1,)),
    "etc": EtcConfig(**SMALL, radius=7, token_types=2),
    "stitched": StitchedConfig(**SMALL, radius=5, block=16, positions=64, token_types=0),
    "mpnet": MPNetConfig(**SMALL, positions=64),
    "windowed bert": BertConfig(
        **SMALL, radius=6, token_types=0, position_offset=2, norm_eps=1e-5, positions=64
    ),
    "bert with types": BertConfig(**SMALL, positions=64),
    "dilated": LongformerConfig(**SMALL, radius=4, dilation=(1, (1, 2, 3)), token_types=0, positions=64),
    "led with types": LongformerConfig(**SMALL, radius=4, positions=64),
    "led, norms first": LongformerConfig(
        **SMALL, radius=4, token_types=0, position_offset=0, positions=64, norm_first=True
    ),
    "bigbird, other draws": BigBirdConfig(
        **SMALL, token_types=0, positions=64, block=4, random="uniform", norm_first=True, norm_eps=1e-5
    ),
    "bigbird, norms last": BigBirdConfig(**SMALL, token_types=0, positions=64, block=4, norm_eps=1e-5),
}
EVERY = pytest.mark.parametrize("kind", ENCODERS)


def whole(encoder: EncoderConfig, **changes: Any) -> Seq2SeqConfig:
    fields = {"layers": 3, "heads": 2, "feed_forward": 56, "positions": 40, "start_id": 5, "eos_id": 7}
    return Seq2SeqConfig(encoder=encoder, **fields | changes)


def model_of(config: Seq2SeqConfig, task: str = "summarize") -> Any:
    torch.manual_seed(0)
    model = build(config, task, **({"labels": 5} if task == "classify" else {}))
    unsettle(model)
    return model.eval()


def scores(model: Any) -> Tensor:
    draw = torch.Generator().manual_seed(1)
    ids, words = (torch.randint(3, 53, (n,), generator=draw) for n in (31, 9))
    with torch.no_grad():
        layout = Layout.packed([20, 11], marked=[[0], [0]])
        found: Tensor
        if isinstance(model, Seq2SeqLM):
            found = model(ids, layout, words, Layout.packed([4, 5]))
        else:
            found = model(ids, layout)
    return found


def config_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "config.json").read_text())
    return found


@EVERY
@pytest.mark.parametrize("task", WRITING)
def test_any_encoder_before_a_decoder_comes_back_bit_by_bit(kind: str, task: str, tmp_path: Path) -> None:
    model = model_of(whole(ENCODERS[kind]), task)
    save_model(model, tmp_path, extra={"remark": "kept"})
    raw = config_of(tmp_path)
    assert raw["model_type"] == "longspan-seq2seq"
    assert raw["remark"] == "kept"
    loaded = load_model(tmp_path, task if task == "encode" else None)  # the bare model is for writing
    assert not loaded.report
    assert task_name(loaded.model) == task
    assert loaded.model.backbone.config == model.backbone.config
    before, after = model.state_dict(), loaded.model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert torch.equal(scores(loaded.model), scores(model))


@EVERY
def test_tied_words_are_stored_once_and_stay_tied(kind: str, tmp_path: Path) -> None:
    model = model_of(whole(ENCODERS[kind]))
    save_model(model, tmp_path)
    stored = load_file(tmp_path / "model.safetensors")
    assert sum(value.shape == (53, 24) for value in stored.values()) == 1
    found = load_model(tmp_path).model
    words = found.backbone.word_embeddings.weight
    assert found.get_parameter("head.decoder.weight") is words
    assert found.get_parameter("backbone.decoder.embeddings.words.weight") is words


def test_words_that_are_not_tied_stay_so(tmp_path: Path) -> None:
    model = model_of(whole(ENCODERS["poolingformer"]))
    model.head.decoder.weight = torch.nn.Parameter(torch.randn(53, 24))
    save_model(model, tmp_path)
    loaded = load_model(tmp_path)
    assert not loaded.report
    assert torch.equal(scores(loaded.model), scores(model))


def test_what_one_has_written_another_continues(tmp_path: Path) -> None:
    """Saved, loaded and saved again, the files are the same, byte for byte."""
    save_model(model_of(whole(ENCODERS["etc"])), tmp_path / "one")
    loaded = load_model(tmp_path / "one")
    save_model(loaded.model, tmp_path / "two", extra=loaded.config)
    for name in ("config.json", "model.safetensors"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


FAMILIAR = {
    "led": LongformerConfig(**SMALL, radius=(4, 8), token_types=0, position_offset=0, positions=64),
    "bart": BertConfig(**SMALL, token_types=0, position_offset=2, norm_eps=1e-5, positions=40),
    "bigbird_pegasus": BigBirdConfig(
        **SMALL, token_types=0, positions=40, block=4, random_blocks=1, norm_first=True, norm_eps=1e-5
    ),
}
OTHERWISE: dict[str, dict[str, Any]] = {
    "led": {"radius": (4, 6)},
    "bart": {"norm_first": True},
    "bigbird_pegasus": {"random_blocks": 0},
}


@pytest.mark.parametrize("kind", FAMILIAR)
def test_what_hugging_face_can_express_is_saved_so_and_all_else_as_ours(kind: str, tmp_path: Path) -> None:
    offset = {"position_offset": 2} if kind == "bart" else {}
    config = whole(FAMILIAR[kind], **offset)
    for number, (model_type, changed) in enumerate(
        [
            (kind, config),
            ("longspan-seq2seq", replace(config, encoder=replace(config.encoder, **OTHERWISE[kind]))),
            ("longspan-seq2seq", replace(config, encoder=replace(config.encoder, norm_eps=1e-6))),
            ("longspan-seq2seq", replace(config, bias=False)),
            ("longspan-seq2seq", replace(config, position_offset=3)),
        ]
    ):
        model, folder = model_of(changed), tmp_path / str(number)
        save_model(model, folder)
        assert config_of(folder)["model_type"] == model_type
        loaded = load_model(folder)
        assert torch.equal(scores(loaded.model), scores(model))
        if model_type != kind:
            assert loaded.model.backbone.config == changed


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        ("reader", "longspan-nothing", "`reader` must be one of longspan-"),
        ("reader", None, "`reader` must be one of"),
        ("reader", ["longspan-bert"], "`reader` must be one of"),
        ("reader", "longspan-seq2seq", "`reader` must be one of"),
        ("encoder", None, "`encoder` must be the fields of a Longspan model"),
        ("encoder", [], "`encoder` must be the fields of a Longspan model"),
        ("decoder", 7, "`decoder` must be the fields of a Longspan model"),
        ("decoder.layers", "3", "`layers` must be a whole number"),
        ("decoder.layers", 0, "`layers` must be at least 1"),
        ("decoder.layers", 10**9, "`layers` must be at most 1024"),
        ("decoder.heads", 5, "`heads` must be a divisor of the width, 24"),
        ("decoder.heads", True, "`heads` must be a whole number"),
        ("decoder.heads", {"a": 1}, "`heads` must be a whole number"),
        ("decoder.positions", [1], "`positions` must be a whole number"),
        ("decoder.positions", 2**40, "`positions` must be at most"),
        ("decoder.bias", 1, "`bias` must be true or false"),
        ("decoder.eos_id", 53, "`eos_id` must be at most 52"),
        ("decoder.start_id", -1, "`start_id` must be at least 0"),
        ("decoder.encoder", {}, "`decoder.encoder` must be one of"),
        ("decoder.surprise", 1, "`decoder.surprise` must be one of"),
        ("encoder.surprise", 1, "`encoder.surprise` must be one of"),
        ("encoder.width", {"a": 1}, "`width` must be a whole number"),
        ("encoder.narrow", 8, "`embedding_size` must be None where a decoder shares the words"),
        ("encoder.norm_first", "yes", "`norm_first` must be true or false"),
        ("encoder.activation", "os.system", "`activation` must be one of"),
        ("encoder.activation_dropout", 1.0, "`activation_dropout` must be from 0 to below 1"),
        ("encoder.activation_dropout", "a", "`activation_dropout` must be a number"),
    ],
)
def test_a_config_that_cannot_be_is_told(where: str, value: Any, message: str, tmp_path: Path) -> None:
    save_model(model_of(whole(ENCODERS["windowed bert"])), tmp_path)
    raw = config_of(tmp_path)
    side, _, name = where.partition(".")
    if name:
        raw[side][name] = value
    else:
        raw[side] = value
    (tmp_path / "config.json").write_text(json.dumps(raw))
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


BART: dict[str, Any] = {
    "model_type": "bart",
    "vocab_size": 53,
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 56,
    "max_position_embeddings": 40,
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"d_model": 25}, "`d_model` must be a multiple of the 3 heads"),
        ({"decoder_attention_heads": 5}, "`decoder_attention_heads` must be a divisor of the width"),
        ({"encoder_layers": "2"}, "`encoder_layers` must be a whole number"),
        ({"decoder_layers": 10**6}, "`decoder_layers` must be at most 1024"),
        ({"encoder_ffn_dim": 0}, "`encoder_ffn_dim` must be at least 1"),
        ({"max_position_embeddings": -3}, "`max_position_embeddings` must be at least 1"),
        ({"activation_function": "eval"}, "`activation_function` must be one of"),
        ({"activation_function": ["gelu"]}, "`activation_function` must be a word"),
        ({"scale_embedding": 2}, "`scale_embedding` must be true or false"),
        ({"normalize_before": True}, "`normalize_before` must be False"),
        ({"add_final_layer_norm": True}, "`add_final_layer_norm` must be False"),
        ({"pad_token_id": 53}, "`pad_token_id` must be less than the vocabulary"),
        ({"eos_token_id": 99}, "`eos_token_id` must be at most 52"),
        ({"eos_token_id": [2, 3]}, "`eos_token_id` must be"),
        ({"decoder_start_token_id": "</s>"}, "`decoder_start_token_id` must be a whole number"),
        ({"dropout": 1.5}, "`dropout` must be from 0"),
        ({"model_type": "led", "attention_window": 7}, "`attention_window` must be even"),
        ({"model_type": "led", "attention_window": [8]}, "`attention_window` must be one number, or one for"),
        ({"model_type": "led", "max_decoder_position_embeddings": None}, "`max_decoder_position_embeddings`"),
        ({"model_type": "bigbird_pegasus", "attention_type": "dense"}, "`attention_type` must be one of"),
        ({"model_type": "bigbird_pegasus", "block_size": 0}, "`block_size` must be at least 1"),
        ({"model_type": "bigbird_pegasus", "use_bias": "no"}, "`use_bias` must be true or false"),
        ({"model_type": "pegasus"}, "`model_type` must be one of"),
        ({"quantization_config": {"bits": 4}}, "`quantization_config` must be None"),
    ],
)
def test_a_config_of_hugging_face_that_cannot_be_is_told_in_its_words(
    fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BART | fields))
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)
