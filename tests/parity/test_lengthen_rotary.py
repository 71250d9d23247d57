"""Models with rotary positions are lengthened by their angles, and transformers reads the same numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from longspan.checkpoints.load import load_model
from longspan.cli import main
from longspan.errors import InputError
from longspan.families.scaling import SCALINGS
from longspan.layout import Layout
from longspan.lengthening.lengthen import lengthen, lengthened
from longspan.reader import Reader
from parity.peers import close, output, peer, words
from unit.tasks.tiny import CORPUS, reader, tokenizer

SHORT, LONG = 96, 240
FAMILIES = ("ModernBert", "EuroBert", "Gemma3Text")


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def source(folder: Path, family: str = "ModernBert", head: str = "Model", **changes: Any) -> Any:
    theirs = peer(family, head, max_position_embeddings=SHORT, **changes)
    theirs.save_pretrained(folder)
    return theirs


def read_by_both(folder: Path, n: int) -> None:
    """transformers and Longspan give the same numbers for a document of n tokens."""
    theirs, complaints = transformers.AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not any(complaints.values()), complaints
    (ids,) = words(n)
    ours = load_model(folder).model.backbone(ids, Layout.packed([n]))
    close(ours.detach(), output(theirs.eval()(ids[None])).detach())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("scaling", SCALINGS)
def test_a_longer_model_is_read_by_transformers_with_the_same_numbers(
    tmp_path: Path, family: str, scaling: str
) -> None:
    source(tmp_path / "short", family)
    report = lengthen(tmp_path / "short", LONG, out=tmp_path / "long", scaling=scaling)
    assert report.loads_in_transformers
    assert (report.pattern, report.short, report.to, report.positions) == ("rope", SHORT, LONG, "rotary")
    for n in (40, LONG):
        read_by_both(tmp_path / "long", n)
    loaded = load_model(tmp_path / "long")
    assert loaded.model.longest == LONG
    before, after = (json.loads((tmp_path / one / "config.json").read_text()) for one in ("short", "long"))
    changed = {name for name in before if after.get(name) != before[name]}
    assert changed <= {"max_position_embeddings", "rope_parameters"}


@pytest.mark.parametrize("family", FAMILIES)
def test_dynamic_scaling_leaves_short_documents_as_they_were(tmp_path: Path, family: str) -> None:
    theirs = source(tmp_path / "short", family)
    report = lengthen(tmp_path / "short", LONG, out=tmp_path / "long", scaling="dynamic")
    assert report.equal
    assert (report.equal_up_to, report.max_difference) == (SHORT, 0.0)
    assert f"equal         up to {SHORT} tokens: largest difference 0.0e+00" in str(report)
    (ids,) = words(SHORT)
    found = load_model(tmp_path / "long").model.backbone(ids, Layout.packed([SHORT]))
    close(found.detach(), output(theirs(ids[None])).detach())


@pytest.mark.parametrize("scaling", ["yarn", "ntk", "linear"])
def test_other_scalings_change_all_documents_and_say_so(tmp_path: Path, scaling: str) -> None:
    source(tmp_path / "short")
    report = lengthen(tmp_path / "short", LONG, out=tmp_path / "long", scaling=scaling)
    assert not report.equal
    assert report.max_difference > 1e-4
    assert "not equal     up to 96 tokens" in str(report)
    card = (tmp_path / "long" / "README.md").read_text()
    assert "| equal to the source | no: the scaling changes all documents" in card
    assert f"--set scaling={scaling}" in card
    assert report.as_json()["equal"] is False


def test_yarn_and_four_times_the_length_are_the_defaults(tmp_path: Path) -> None:
    source(tmp_path / "short", "EuroBert", "ForMaskedLM")
    report = lengthen(tmp_path / "short", out=tmp_path / "long")
    model = load_model(tmp_path / "long").model
    assert report.to == model.longest == 4 * SHORT
    rope = model.config.layer_rope(0)  # type: ignore[attr-defined]
    assert (rope.rope_type, rope.factor, rope.original_max_position_embeddings) == ("yarn", 4.0, SHORT)
    assert report.notes["angles"] == "base 10000, yarn, factor 4, from 96 tokens"
    assert "all tokens seen" in str(report)
    assert "head (fill)" in report.copied


@pytest.mark.parametrize("scaling", ["yarn", "linear", "dynamic"])
def test_a_model_can_be_lengthened_twice(tmp_path: Path, scaling: str) -> None:
    source(tmp_path / "a", "EuroBert")
    lengthen(tmp_path / "a", 2 * SHORT, out=tmp_path / "b", scaling=scaling)
    lengthen(tmp_path / "b", 4 * SHORT, out=tmp_path / "c", scaling=scaling)
    lengthen(tmp_path / "a", 4 * SHORT, out=tmp_path / "at-once", scaling=scaling)
    twice, once = (load_model(tmp_path / name).model.config for name in ("c", "at-once"))
    assert twice == once
    with pytest.raises(InputError, match=f"`scaling` must be {scaling}, as the source has it, but is 'ntk'"):
        lengthen(tmp_path / "b", 4 * SHORT, scaling="ntk")


def test_layers_with_a_window_keep_their_angles_and_may_get_another_window(tmp_path: Path) -> None:
    source(tmp_path / "short", num_hidden_layers=3)
    old = load_model(tmp_path / "short").model
    new = lengthened(old, LONG, radius=7)
    assert new.config.layer_rope(1) == old.config.layer_rope(1)  # type: ignore[attr-defined]
    assert new.config.layer_rope(0) != old.config.layer_rope(0)  # type: ignore[attr-defined]
    report = lengthen(tmp_path / "short", SHORT, out=tmp_path / "wide", radius=7)
    assert report.equal  # within the narrower of both windows
    assert (report.equal_up_to, report.radius) == (5, (7, 7, 7))
    assert [one.tokens for one in report.drift] == [5, SHORT]
    read_by_both(tmp_path / "wide", 61)


def test_options_of_yarn_are_those_of_transformers(tmp_path: Path) -> None:
    source(tmp_path / "short", "EuroBert")
    options: dict[str, Any] = {"beta_fast": 8, "beta_slow": 2, "attention_factor": 1.25, "factor": 3.5}
    lengthen(tmp_path / "short", LONG, out=tmp_path / "long", **options)
    stated = json.loads((tmp_path / "long" / "config.json").read_text())["rope_parameters"]
    assert {name: stated[name] for name in options} == options
    read_by_both(tmp_path / "long", LONG)


def test_vectors_prompts_and_tokenizer_come_along(tmp_path: Path) -> None:
    made = reader("modernbert", "encode")
    Reader(made.model, tokenizer("modernbert"), prompts={"query": "the river "}).save(tmp_path / "short")
    lengthen(tmp_path / "short", 256, out=tmp_path / "long", scaling="dynamic")
    text = " ".join(CORPUS)
    from longspan import load

    long = load(tmp_path / "long")
    assert long.prompts == {"query": "the river "}
    assert long.encode(text).shape == (16,)
    close(torch.from_numpy(long.encode(CORPUS[0])), torch.from_numpy(made.encode(CORPUS[0])))
    with pytest.raises(InputError, match="at most 64 tokens long"):
        made.encode(text)


def test_the_command_scales_angles(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source(tmp_path / "short")
    given = ["--to", str(LONG), "--set", "scaling=yarn", "--set", "factor=2.5", "--radius", "5"]
    assert main(["lengthen", str(tmp_path / "short"), "--out", str(tmp_path / "long"), *given]) == 0
    printed = capsys.readouterr().out
    assert "rope, radius 5, 240 tokens, positions: rotary" in printed
    assert "angles        base 160000, yarn, factor 2.5, from 96 tokens" in printed
    assert "transformers  loads it" in printed
    assert main(["lengthen", "--options"]) == 0
    assert "yarn (default), ntk, dynamic or linear" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scaling": "magic"}, "`scaling` must be one of yarn, ntk, dynamic, linear"),
        ({"scaling": 3}, "`scaling` must be"),
        ({"factor": 0.5}, "`factor` must be from 1"),
        ({"factor": "much"}, "`factor` must be a number"),
        ({"scaling": "ntk", "beta_fast": 3}, "`beta_fast` must be given for scaling yarn only"),
        ({"radius": 0}, "`radius` must be at least 1"),
        ({"radius": 2.5}, "`radius` must be a whole number"),
        ({"block": 4}, "`block` must be given for .* only, but is 'rope'"),
        ({"speed": 4}, "There is no option `speed`"),
        ({"positions": "interpolate"}, "`positions` must be left out for rope"),
        (
            {"pattern": "longformer"},
            "`pattern` must be rope, as the source is ModernBERT, but",
        ),
        ({"to": SHORT - 1}, "`to` must be at least 96.* never made shorter"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    source(tmp_path)
    with pytest.raises(InputError, match=message):
        lengthen(tmp_path, **{"to": LONG} | options)


def test_each_kind_of_positions_has_its_own_way(tmp_path: Path) -> None:
    peer("Bert", "Model").save_pretrained(tmp_path / "bert")
    with pytest.raises(InputError, match="`pattern` must be one for a table of positions, as the source is"):
        lengthen(tmp_path / "bert", 4096, pattern="rope")
    source(tmp_path / "euro", "EuroBert")
    with pytest.raises(InputError, match="`radius` must be left out for a model without windows"):
        lengthen(tmp_path / "euro", LONG, radius=9)
