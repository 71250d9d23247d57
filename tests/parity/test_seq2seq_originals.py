"""The files that the authors of LED and BigBird-Pegasus released compute what their conversions compute."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from helpers import task_name
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import CheckpointError, InputError
from longspan.families.longformer.model import LongformerConfig
from parity.peers import close
from parity.test_round_trips import read_back, same
from parity.writers import SIZES, documents, expected, given, peer
from unit.formats import bundle

BOTH = "ForConditionalGeneration"
TF_LAYER = {
    "self_attn.self.": "attention/self/",
    "self_attn.output.": "attention/output/dense/",
    "self_attn.out_proj.": "attention/output/dense/",
    "self_attn.": "attention/self/",
    "self_attn_layer_norm.": "attention/self/LayerNorm/",
    "encoder_attn.out_proj.": "attention/encdec_output/dense/",
    "encoder_attn.": "attention/encdec/",
    "encoder_attn_layer_norm.": "attention/encdec/LayerNorm/",
    "fc1.": "intermediate/dense/",
    "fc2.": "output/dense/",
    "final_layer_norm.": "intermediate/LayerNorm/",
}
"""How a layer's parts are called in google-research/bigbird, by how they begin in transformers."""
SHORT = {"q_proj": "query", "k_proj": "key", "v_proj": "value"}


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def agree(folder: Path, theirs: Any) -> Any:
    loaded = load_model(folder)
    assert not loaded.report
    assert not loaded.notes
    ids, texts = documents(45, 20, end=theirs.config.eos_token_id), documents(9, 4, end=5, seed=2)
    with torch.no_grad():
        wanted = expected(theirs, BOTH, ids, texts)
        close(given(loaded.model, ids, texts, marked=theirs.config.model_type == "led"), wanted)
    return loaded


def variables(theirs: Any) -> dict[str, Tensor]:
    """The weights of a model by the names and shapes of the original code."""
    found = {}
    for key, value in theirs.model.state_dict().items():
        _, _, rest = key.partition(".layers.")
        name = key
        if key == "shared.weight":
            name = "embeddings/word_embeddings"
        elif key.endswith("embed_tokens.weight"):
            continue
        elif key.endswith("embed_positions.weight"):
            name = "embeddings/position_embeddings"
        elif rest:
            number, _, part = rest.partition(".")
            begin = next(one for one in TF_LAYER if part.startswith(one))
            end = part.removeprefix(begin)
            for short, long in SHORT.items():
                end = end.replace(short, long)
            name = f"{key.split('.')[0]}/layer_{number}/{TF_LAYER[begin]}{end.replace('.', '/')}"
        else:
            name = key.replace(".layernorm_embedding.", "/LayerNorm/")
        if name.endswith("weight"):
            norm = "LayerNorm" in name
            name = name.removesuffix("weight") + ("gamma" if norm else "kernel")
            value = value if norm else value.T
        elif "LayerNorm" in name:
            name = name.replace("bias", "beta")
        found[f"pegasus/{name}"] = value.contiguous()
    return found


def pegasus(folder: Path, *, extra: dict[str, Tensor] | None = None, **changes: Any) -> Any:
    """A folder with the original format, and the model of transformers that it is."""
    theirs = peer("pegasus", **changes)
    theirs.final_logits_bias.zero_()  # the original has none
    with torch.no_grad():  # nor two tables of positions
        decoder = theirs.model.decoder.embed_positions.weight
        decoder.copy_(theirs.model.encoder.embed_positions.weight)
    tensors = variables(theirs) | (extra or {}) | {"global_step": torch.tensor(300000)}
    bundle.write(folder, tensors, name="model.ckpt-300000")
    fields = theirs.config.to_diff_dict()
    (folder / "config.json").write_text(json.dumps({"model_type": "bigbird_pegasus", **fields}))
    return theirs


def test_the_names_are_those_of_the_original_code(tmp_path: Path) -> None:
    """As its variable scopes make them; the sizes are ours."""
    theirs = pegasus(tmp_path)
    found = {name: tuple(value.shape) for name, value in variables(theirs).items()}
    wide, inner = SIZES["d_model"], SIZES["decoder_ffn_dim"]
    assert found["pegasus/embeddings/word_embeddings"] == (SIZES["vocab_size"], wide)
    assert found["pegasus/embeddings/position_embeddings"] == (96, wide)
    assert found["pegasus/encoder/layer_0/attention/self/query/kernel"] == (wide, wide)
    assert found["pegasus/encoder/layer_1/attention/output/dense/kernel"] == (wide, wide)
    assert found["pegasus/encoder/layer_0/attention/self/LayerNorm/beta"] == (wide,)
    assert found["pegasus/decoder/layer_2/intermediate/dense/kernel"] == (wide, inner)
    assert found["pegasus/decoder/layer_2/output/dense/bias"] == (wide,)
    assert found["pegasus/decoder/layer_0/attention/encdec/value/kernel"] == (wide, wide)
    assert found["pegasus/decoder/layer_0/attention/encdec_output/dense/kernel"] == (wide, wide)
    assert found["pegasus/decoder/layer_0/intermediate/LayerNorm/gamma"] == (wide,)
    assert found["pegasus/decoder/LayerNorm/gamma"] == found["pegasus/encoder/LayerNorm/beta"] == (wide,)
    assert len(found) == 2 + 2 * (4 + 6 + 2) + 3 * (8 + 8 + 2) + 4


@pytest.mark.parametrize("bias", [False, True])
def test_a_released_pegasus_computes_what_its_conversion_computes(tmp_path: Path, bias: bool) -> None:
    theirs = pegasus(tmp_path / "theirs", use_bias=bias)
    loaded = agree(tmp_path / "theirs", theirs)
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    same(read_back(tmp_path / "ours", type(theirs)), theirs)
    agree(tmp_path / "ours", theirs)


def test_biases_that_are_not_used_and_what_optimizers_keep_are_left_out(tmp_path: Path) -> None:
    layer, wide = "pegasus/decoder/layer_1/attention", SIZES["d_model"]
    extra = {
        f"{layer}/self/query/bias": torch.ones(wide),
        f"{layer}/encdec/key/bias": torch.ones(wide),
        f"{layer}/output/dense/bias": torch.ones(wide),
        f"{layer}/encdec_output/dense/bias": torch.ones(wide),
        "pegasus/encoder/layer_0/attention/self/value/bias": torch.ones(wide),
        "pegasus/embeddings/word_embeddings/Adafactor": torch.ones(3),
        f"{layer}/self/query/kernel_slot_vr": torch.ones(wide),
    }
    agree(tmp_path, pegasus(tmp_path, extra=extra))


def test_other_weights_are_reported_and_missing_ones_named(tmp_path: Path) -> None:
    theirs = pegasus(tmp_path / "more", extra={"pegasus/pooler/dense/bias": torch.ones(3)})
    assert load_model(tmp_path / "more").report.unexpected == ("pooler.dense.bias",)
    tensors = variables(theirs)
    del tensors["pegasus/decoder/layer_1/attention/encdec/key/kernel"]
    bundle.write(tmp_path / "less", tensors)
    (tmp_path / "less" / "config.json").write_text((tmp_path / "more" / "config.json").read_text())
    with pytest.raises(CheckpointError, match=r"'model.decoder.layers.1.encoder_attn.k_proj.weight'"):
        load_model(tmp_path / "less")


@pytest.mark.parametrize("shape", [(), (24,), (40, 24), (24, 40, 1)])
def test_kernels_of_other_shapes_are_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    kernel = {"pegasus/encoder/layer_0/intermediate/dense/kernel": torch.zeros(shape)}
    pegasus(tmp_path, extra=kernel)
    with pytest.raises(CheckpointError, match=r"'model.encoder.layers.0.fc1.weight' has the shape"):
        load_model(tmp_path)


def test_without_a_config_it_is_said_what_to_write(tmp_path: Path) -> None:
    pegasus(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"no config.json.*\{\"model_type\": \"bigbird_pegasus\"\}"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bigbird_pegasus"}')
    with pytest.raises(CheckpointError, match="asks for 16 layers"):  # those of the released models
        load_model(tmp_path)


def allenai(folder: Path, *, drop: tuple[str, ...] = (), **fields: Any) -> Any:
    """A LED as allenai's code saved it, and as transformers has it."""
    theirs = peer("led")
    state = {}
    for name, value in theirs.state_dict().items():
        key = name.replace("led.", "model.", 1) if name.startswith("led.") else name
        if name.endswith("embed_positions.weight"):
            value = torch.cat([torch.full((2, value.shape[1]), torch.nan), value])  # never read
        state[key] = value.clone()
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(state, folder / "pytorch_model.bin")
    raw = SIZES | {
        "model_type": "bart",
        "architectures": ["LongformerEncoderDecoderForConditionalGeneration"],
        "attention_window": [4, 8],
        "attention_dilation": [1, 1],
        "autoregressive": False,
        "attention_mode": "sliding_chunks",
        "max_encoder_position_embeddings": 96,
        "max_decoder_position_embeddings": 64,
        "normalize_before": False,
        "scale_embedding": False,
        **fields,
    }
    (folder / "config.json").write_text(json.dumps({k: v for k, v in raw.items() if k not in drop}))
    return theirs


@pytest.mark.parametrize(
    "drop",
    [(), ("model_type",), ("attention_mode", "model_type"), ("attention_dilation", "autoregressive")],
    ids=str,
)
def test_a_led_of_allenai_computes_what_its_conversion_computes(
    tmp_path: Path, drop: tuple[str, ...]
) -> None:
    theirs = allenai(tmp_path / "theirs", drop=drop)
    loaded = agree(tmp_path / "theirs", theirs)
    assert task_name(loaded.model) == "summarize"
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    raw = json.loads((tmp_path / "ours" / "config.json").read_text())
    assert raw["model_type"] == "led"
    assert raw["architectures"] == ["LEDForConditionalGeneration"]
    assert raw["attention_window"] == [8, 16]
    assert not {"attention_dilation", "autoregressive", "attention_mode"} & set(raw)
    same(read_back(tmp_path / "ours", type(theirs)), theirs)
    agree(tmp_path / "ours", theirs)


def test_a_dilated_led_of_allenai_is_saved_as_ours(tmp_path: Path) -> None:
    allenai(tmp_path / "theirs", attention_dilation=[1, 3])
    loaded = load_model(tmp_path / "theirs")
    assert isinstance(loaded.model.config, LongformerConfig)
    assert loaded.model.config.dilation == (1, 3)
    save_model(loaded.model, tmp_path / "ours", extra=loaded.config)
    assert json.loads((tmp_path / "ours" / "config.json").read_text())["model_type"] == "longspan-seq2seq"
    again = load_model(tmp_path / "ours")
    assert again.model.backbone.config == loaded.model.backbone.config
    assert not {name for name in load_file(tmp_path / "ours" / "model.safetensors") if name.startswith("led")}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"autoregressive": True}, "`autoregressive` must be false"),
        ({"attention_mode": "n2"}, "`attention_mode` must be one of"),
        ({"attention_dilation": [1]}, "`attention_dilation` must be one number, or one for each of the 2"),
        ({"attention_window": [4, 0]}, r"`attention_window\[1\]` must be at least 1"),
    ],
)
def test_configs_of_allenai_that_cannot_be_are_errors(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    allenai(tmp_path, **fields)
    with pytest.raises(InputError, match=message):
        load_model(tmp_path)


def test_fields_of_allenai_in_a_file_of_hugging_face_mean_nothing(tmp_path: Path) -> None:
    theirs = peer("led")
    theirs.save_pretrained(tmp_path)
    raw = json.loads((tmp_path / "config.json").read_text())
    raw |= {"attention_dilation": [1, 1], "autoregressive": False, "attention_mode": "longformer"}
    (tmp_path / "config.json").write_text(json.dumps(raw))
    agree(tmp_path, theirs)
