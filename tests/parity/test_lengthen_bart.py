"""BART made long: the LED that transformers reads, equal to the BART where its window sees everything."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from helpers import task_name
from longspan.checkpoints.load import load_model
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.layout import Layout
from longspan.lengthening.lengthen import lengthen

VOCAB, SHORT = 61, 64
HEADS = {
    "ForConditionalGeneration": "summarize",
    "Model": "summarize",
    "ForSequenceClassification": "classify",
    "ForQuestionAnswering": "answer",
}


@pytest.fixture(autouse=True)
def engine() -> None:
    """It is about weights: one kernel will do."""


def bart(folder: Path, head: str = "ForConditionalGeneration", positions: int = SHORT) -> Any:
    """A tiny BART on disk, its parameters far from trivial."""
    torch.manual_seed(0)
    config = transformers.BartConfig(
        vocab_size=VOCAB,
        d_model=24,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=3,
        decoder_attention_heads=2,
        encoder_ffn_dim=40,
        decoder_ffn_dim=56,
        max_position_embeddings=positions,
    )
    model = getattr(transformers, f"Bart{head}")(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(float("norm" in name and name.endswith("weight")), 0.3)
        if head == "ForConditionalGeneration":
            model.get_buffer("final_logits_bias").normal_()
            model.generation_config.num_beams = 3
    model.save_pretrained(folder)
    return model


def words(count: int) -> torch.Tensor:
    return torch.randint(3, VOCAB, (1, count), generator=torch.Generator().manual_seed(count))


def scores(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """transformers' scores of what is written about a document; in a LED its first token is global."""
    mark = {"global_attention_mask": (torch.arange(ids.shape[1]) == 0).long()[None]}
    with torch.no_grad():
        given = mark if model.config.model_type == "led" else {}
        return model(ids, decoder_input_ids=words(9), **given).logits[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    "options",
    [
        {"to": 300, "radius": 8},
        {"to": 101, "positions": "interpolate"},
        {"pattern": "bigbird", "to": 512, "block": 4},
        {"pattern": "poolingformer", "to": 300},
        {"pattern": "stitched", "block": 8},
    ],
    ids=str,
)
def test_it_is_the_same_model_where_it_sees_as_much(
    tmp_path: Path, head: str, options: dict[str, Any]
) -> None:
    bart(tmp_path / "bart", head)
    report = lengthen(tmp_path / "bart", out=tmp_path / "long", **options)
    assert report.task == HEADS[head]
    assert report.equal_up_to >= min(9, SHORT)
    assert report.max_difference < 1e-5
    again = load_model(tmp_path / "long").model
    assert task_name(again) == report.task
    assert again.longest == report.to
    if "to" in options:
        assert report.to == options["to"]


def test_transformers_reads_the_led_and_finds_the_bart_in_it(tmp_path: Path) -> None:
    source = bart(tmp_path / "bart")
    report = lengthen(tmp_path / "bart", 320, out=tmp_path / "led", radius=(8, 16))  # they pad to a window
    assert report.loads_in_transformers
    led, complaints = transformers.LEDForConditionalGeneration.from_pretrained(
        tmp_path / "led", output_loading_info=True
    )
    assert not any(complaints.values())
    assert led.generation_config.num_beams == 3
    near = words(report.equal_up_to)
    torch.testing.assert_close(scores(led.eval(), near), scores(source, near), rtol=0, atol=1e-5)
    far, ours = words(299), load_model(tmp_path / "led").model
    assert isinstance(ours, Seq2SeqLM)
    found = ours(far[0], Layout.packed([299], marked=[[0]]), words(9)[0], Layout.packed([9]))
    torch.testing.assert_close(found, scores(led, far), rtol=0, atol=1e-5)
    assert not torch.allclose(scores(led, far[:, :64]), scores(source, far[:, :64]), atol=1e-3)


def test_positions_are_copied_again_and_again_and_those_that_are_written_stay(tmp_path: Path) -> None:
    source = bart(tmp_path / "bart")
    lengthen(tmp_path / "bart", 3 * SHORT + 5, out=tmp_path / "led")
    led = transformers.LEDForConditionalGeneration.from_pretrained(tmp_path / "led")
    before, after = source.model.encoder.embed_positions.weight, led.led.encoder.embed_positions.weight
    assert torch.equal(after, before[2:].repeat(4, 1)[: 3 * SHORT + 5])
    assert torch.equal(
        led.led.decoder.embed_positions.weight, source.model.decoder.embed_positions.weight[2:]
    )
    for name in ("query", "key", "value"):
        attention = led.led.encoder.layers[1].self_attn.longformer_self_attn
        assert torch.equal(getattr(attention, f"{name}_global").weight, getattr(attention, name).weight)


def test_without_a_length_it_becomes_the_led_of_the_paper(tmp_path: Path) -> None:
    bart(tmp_path / "bart", positions=1024)
    report = lengthen(tmp_path / "bart", out=tmp_path / "led")
    assert (report.to, report.radius, report.equal_up_to) == (16384, (512, 512), 513)
    config = json.loads((tmp_path / "led/config.json").read_text())
    assert (config["max_encoder_position_embeddings"], config["max_decoder_position_embeddings"]) == (
        16384,
        1024,
    )
    assert config["attention_window"] == [1024, 1024]


def test_a_decoder_that_reads_becomes_as_long(tmp_path: Path) -> None:
    bart(tmp_path / "bart", "ForQuestionAnswering")
    lengthen(tmp_path / "bart", 320, out=tmp_path / "led")
    led = transformers.LEDForQuestionAnswering.from_pretrained(tmp_path / "led").eval()
    ids = words(290)
    with torch.no_grad():
        theirs = led(ids)
        ours = load_model(tmp_path / "led").model(ids[0], Layout.packed([290], marked=[[]]))
    wanted = torch.stack([theirs.start_logits[0], theirs.end_logits[0]], -1)
    torch.testing.assert_close(ours, wanted, rtol=0, atol=1e-5)


def test_an_encoder_of_two_levels_before_a_decoder_is_a_model_of_ours(tmp_path: Path) -> None:
    bart(tmp_path / "bart")
    lengthen(tmp_path / "bart", 300, out=tmp_path / "long", pattern="poolingformer")
    again = load_model(tmp_path / "long")
    assert isinstance(again.model.backbone.config, Seq2SeqConfig)
    assert isinstance(again.model.config, PoolingformerConfig)
    assert again.model.get_parameter("head.decoder.weight") is again.model.backbone.word_embeddings.weight
