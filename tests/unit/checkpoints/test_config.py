"""config.json is data from anywhere: it is translated both ways, or refused by name; nothing in it acts."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.checkpoints.labels import read_labels, read_problem
from longspan.errors import InputError
from longspan.families.bert.model import BertConfig
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.mpnet.model import MPNetConfig
from longspan.families.registry import all_families, by_model_type, family_of, read_config
from longspan.families.roberta.model import RobertaConfig
from longspan.families.schema import DEFAULTS

LONGFORMER: dict[str, Any] = {
    "model_type": "longformer",
    "attention_window": [512] * 12,
    "max_position_embeddings": 4098,
    "vocab_size": 50265,
    "layer_norm_eps": 1e-5,
    "type_vocab_size": 1,
    "attention_mode": "longformer",
    "gradient_checkpointing": False,
}


def test_a_window_of_both_sides_becomes_a_radius_and_the_offset_is_taken_off() -> None:
    family, config = read_config(LONGFORMER)
    assert isinstance(config, LongformerConfig)
    assert (config.radius, config.positions, config.position_offset) == ((256,) * 12, 4096, 2)
    written = family.write(config)
    assert {name: written[name] for name in ("attention_window", "max_position_embeddings")} == {
        "attention_window": [512] * 12,
        "max_position_embeddings": 4098,
    }


def test_the_original_format_counts_one_side() -> None:
    raw = {
        "num_hidden_layers": 2,
        "architectures": ["RobertaForMaskedLM"],
        "attention_window": [256, 128],
        "attention_dilation": [1, 2],
        "autoregressive": False,
        "attention_mode": "tvm",
        "max_position_embeddings": 4098,
    }
    for model_type in ({}, {"model_type": "roberta"}):
        family, config = read_config(raw | model_type)
        assert isinstance(config, LongformerConfig)
        assert (config.radius, config.dilation) == ((256, 128), (1, 2))
        assert family.architecture(raw) == "ForMaskedLM"
    for wrong in ({"autoregressive": True}, {"attention_mode": "sliding_chunks_no_overlap"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            read_config(raw | wrong)


@pytest.mark.parametrize("name", [name for name in by_model_type() if name != "etc"])
def test_what_a_file_leaves_out_means_what_it_means_to_transformers(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    given = {"use_bidirectional_attention": True} if name == "gemma3_text" else {}  # else it writes
    theirs = transformers.AutoConfig.for_model(name, **given).to_dict()
    assert read_config({"model_type": name, **given})[1] == read_config(theirs)[1]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"attention_window": 0}, "attention_window"),
        ({"attention_window": 511}, r"even, as it counts both sides, but is 511. Write 512."),
        ({"attention_window": [512] * 11}, "one for each of the 12 layers"),
        ({"num_attention_heads": 7}, r"`hidden_size` must be a multiple of the 7 heads"),
        ({"pad_token_id": -1}, "pad_token_id"),
        ({"layer_norm_eps": math.nan}, "layer_norm_eps"),
        (
            {"hidden_size": "768"},
            r"`hidden_size` must be a whole number, but is '768'. It stands in config.json.",
        ),
        ({"hidden_act": ["gelu"]}, "hidden_act"),
        ({"hidden_act": "os.system"}, "hidden_act"),
        ({"vocab_size": 2**40}, "vocab_size"),
        ({"max_position_embeddings": 2}, "max_position_embeddings"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"model_type": "gpt2"}, "model_type"),
        ({"model_type": ["longformer"]}, "model_type"),
        ({"model_type": "roberta", "attention_window": None, "is_decoder": True}, "attention_window"),
        ({"model_type": "big_bird", "attention_type": "sparse"}, "attention_type"),
        ({"model_type": "big_bird", "use_bias": 1}, "use_bias"),
        ({"model_type": "big_bird", "block_size": 0}, "block_size"),
        ({"model_type": "bert", "is_decoder": True}, "is_decoder"),
    ],
    ids=str,
)
def test_an_absurd_field_is_named(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read_config(LONGFORMER | changes)


NAMES = [
    *DEFAULTS,
    *(
        "attention_window",
        "attention_dilation",
        "autoregressive",
        "attention_mode",
        "pad_token_id",
        "encoder",
    ),
    *("block_size", "num_random_blocks", "attention_type", "use_bias", "rescale_embeddings", "is_decoder"),
    *("add_cross_attention", "architectures", "position_embedding_type", "auto_map", "quantization_config"),
    *("id2label", "num_labels", "problem_type", "classifier_dropout"),
]
OUR_NAMES = [
    "width",
    "layers",
    "heads",
    "radius",
    "dilation",
    "random",
    "block",
    "full_up_to",
    "bias",
    "positions",
]
JUNK: list[Any] = [
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        2,
        3,
        64,
        2**31,
        2**63,
        -(2**70),
        10**39,
        0.1,
        -1.0,
        1e300,
        math.nan,
        math.inf,
    ),
    *(
        "",
        "gelu",
        "hf",
        "block_sparse",
        "absolute",
        "regression",
        "LongformerModel",
        "é",
        [],
        {},
        [[]],
        [1, 2],
        [2] * 12,
    ),
]


def junk(source: random.Random, depth: int = 2) -> Any:
    """Anything that JSON can hold."""
    if depth and source.random() < 0.3:
        inner = [junk(source, depth - 1) for _ in range(source.randrange(5))]
        return (
            inner
            if source.random() < 0.5
            else dict(zip(source.sample([*OUR_NAMES, "0"], 4), inner, strict=False))
        )
    return source.choice(JUNK)


@given(seed=st.integers(0, 2**32))
def test_any_config_is_translated_or_refused_by_name(seed: int) -> None:
    source = random.Random(seed)
    for _ in range(200):  # of each of the profile's 50 examples: 10,000 configs
        kind = source.choice(
            [*by_model_type(), *(family.own_type for family in all_families()), source.choice(JUNK)]
        )
        fields = {name: junk(source) for name in source.sample(NAMES, source.randrange(1, 5))}
        if source.random() < 0.3:
            fields["encoder"] = {name: junk(source) for name in source.sample(OUR_NAMES, source.randrange(4))}
        raw = {"model_type": kind, **fields}
        try:
            family, config = read_config(raw)
            family.architecture(raw)
            read_labels(raw)
            read_problem(raw)
        except InputError:
            continue
        assert isinstance(config, family.config)
        assert config.layers <= 1024


CONFIGS: list[tuple[EncoderConfig, str | None]] = [
    (LongformerConfig(layers=2, radius=(4, 2)), None),
    (LongformerConfig(layers=2, dilation=(1, 2)), "dilation"),
    (LongformerConfig(share_global_projections=True), "shared global projections"),
    (LongformerConfig(layers=2, radius=(3, 2)), "windows that do not divide the widest"),
    (LongformerConfig(position_offset=0), "positions that do not follow the padding token"),
    (BigBirdConfig(), None),
    (BigBirdConfig(full_up_to=704), None),
    (BigBirdConfig(attention_type="full", random="tf"), None),
    (BigBirdConfig(random="tf"), "another plan of random blocks"),
    (BigBirdConfig(random_blocks=0), "no random blocks"),
    (BigBirdConfig(full_up_to=512), "another length up to which attention is full"),
    (BigBirdConfig(position_offset=1), "positions that do not begin at 0"),
    (BertConfig(), None),
    (RobertaConfig(), None),
    (BertConfig(radius=64), "a window"),
    (BertConfig(position_offset=5), "positions that do not begin at 0"),
    (RobertaConfig(position_offset=5), "positions that do not follow the padding token"),
]


@pytest.mark.parametrize(
    ("config", "reason"), CONFIGS, ids=lambda value: value if isinstance(value, str) else type(value).__name__
)
def test_what_transformers_cannot_express_is_known(config: EncoderConfig, reason: str | None) -> None:
    family = family_of(config, {})
    assert family.cannot(config) == reason
    if reason is None:
        assert family.cannot(read_config(family.write(config) | {"model_type": family.model_type})[1]) is None


def test_labels_come_in_order_and_without_gaps() -> None:
    assert read_labels({"id2label": {"1": "yes", "0": "no"}}) == ("no", "yes")
    assert read_labels({"num_labels": 3}) == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert read_labels({}, ["a", "b", "c"]) == ("a", "b", "c")
    assert read_labels({"id2label": {"0": "no", "1": "yes"}}, 2) == ("no", "yes")
    for wrong in ({"id2label": {"0": "no", "2": "yes"}}, {"id2label": ["no"]}, {"num_labels": 10**9}):
        with pytest.raises(InputError):
            read_labels(wrong)
    with pytest.raises(InputError, match="problem_type"):
        read_problem({"problem_type": "guess"})


@pytest.mark.parametrize("wrong", ["norm_first", "rescale_embeddings", "activation_dropout"])
@pytest.mark.parametrize("kind", [BertConfig, LongformerConfig, MPNetConfig, BigBirdConfig])
def test_what_hugging_face_would_compute_otherwise_is_not_saved_as_its(
    kind: type[EncoderConfig], wrong: str
) -> None:
    usual: dict[str, Any] = (
        {"buckets": 32, "token_types": 0, "position_offset": 2} if kind is MPNetConfig else {}
    )
    plain, other = kind(**usual), kind(**usual | {wrong: 0.1 if wrong == "activation_dropout" else True})
    assert family_of(plain, {}).why_not(plain, "Model") is None
    has_words = kind is BigBirdConfig and wrong == "rescale_embeddings"
    assert (family_of(other, {}).why_not(other, "Model") is None) == has_words


def test_bigbird_without_a_bias_behind_attention_is_a_model_of_ours() -> None:
    config = BigBirdConfig(out_bias=False)
    assert family_of(config, {}).why_not(config, "Model") == "attention whose output has no bias"
