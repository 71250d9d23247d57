"""`longspan draw MODEL` and `longspan explain MODEL` as people meet them."""

import json
from pathlib import Path

import pytest

from longspan.cli import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 2) -> str:
    """The one line on stderr with which a mistake is refused."""
    try:
        found: object = main(arguments)
    except SystemExit as stop:
        found = stop.code
    text = capsys.readouterr().err
    assert found == status
    assert "Traceback" not in text
    return text.splitlines()[-1]


def test_a_model_is_drawn_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "draw", "longformer-base", "--length", "800", "--marked", "0,5")
    assert text.startswith("longformer-base: Longformer, 12 layers of width 768, 12 heads; one document")
    assert "with 2 global tokens" in text
    assert "layers 0 to 11: window, global rows" in text


def test_models_and_patterns_are_saved_side_by_side(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    printed(capsys, "draw", "default", "window", "--svg", "--length", "300", "--out", str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {"default.svg", "window.svg"}
    assert "Stitched" in (tmp_path / "default.svg").read_text()


def test_the_name_of_a_pattern_still_means_the_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "draw", "longformer").startswith("longformer: Window(3) | GlobalTokens()\n")
    assert "12 heads" in printed(capsys, "explain", "window", "--length", "90")


def test_a_model_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "explain", "bigbird-base", "--length", "1024", "--gflops", "100,80")
    assert text.startswith("bigbird-base: BigBird, 12 layers of width 768")
    assert "predicted (100 GFLOP/s in linear layers, 80 GFLOP/s in attention; as given)" in text
    assert "linear layers" in text


def test_a_model_is_explained_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(
        printed(capsys, "explain", "poolingformer-base", "--length", "600", "--gflops", "50", "--json")
    )
    assert {call["name"]: call["layers"] for call in found["attention"]} == {
        "window": list(range(12)),
        "global rows": list(range(12)),
        "pooled": [7, 8, 9],
    }
    assert found["speed"] == {"measured": False, "linear_gflops": 50.0, "attention_gflops": 50.0}
    assert found["dominates"] == "linear"
    assert list(found) == [
        "model",
        "family",
        "length",
        "marked",
        "layers",
        "heads",
        "width",
        "parameters",
        "attention",
        "pairs",
        "receptive_field",
        "flops",
        "memory_bytes",
        "threads",
        "speed",
        "predicted_seconds",
        "dominates",
        "advice",
    ]


def test_a_pattern_is_explained_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "explain", "Window(4)", "--length", "90", "--heads", "2", "--json"))
    assert found["attention"][0]["pattern"] == "Window(4)"
    assert found["pairs"]["useful"] == 2 * (90 * 9 - 20)


def test_a_folder_with_a_config_is_enough(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert", "num_hidden_layers": 2}')
    assert "Bert, 2 layers of" in printed(capsys, "explain", str(tmp_path), "--length", "64", "--gflops", "9")
    assert "Bert, 2 layers" in printed(capsys, "draw", str(tmp_path), "--length", "64")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["draw", "longformer-bas"], "Did you mean longformer-base?"),
        (["explain", "nothing"], "`longspan draw` shows the gallery."),
        (["explain", "./no/such/folder"], "must be a folder with config.json"),
        (["explain", "bert-base", "--length", "100,200"], "`--length` must be one number for a model"),
        (["explain", "bert-base", "--length", "0"], "`length` must be at least 1"),
        (["explain", "bert-base", "--heads", "3"], "`heads` must be given for patterns only"),
        (["explain", "bert-base", "--repeat", "3"], "`--repeat` must be given for patterns only"),
        (["explain", "bert-base", "Full()"], "must be one model, or patterns alone"),
        (["explain", "bert-base", "--gflops", "fast"], "one number or two with a comma between"),
        (["explain", "bert-base", "--gflops", "1,2,3"], "one number or two with a comma between"),
        (["explain", "bert-base", "--gflops", "0"], "`gflops` must be more than 0"),
        (["draw", "longformer-base", "--length", "50", "--marked", "99"], "marked"),
        (
            ["draw", "default", "--length", "20000"],
            "`--length` must be at most 8192, but is 20000. Draw a shorter document.",
        ),
    ],
)
def test_a_mistake_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in complaint(capsys, *arguments)


def test_a_damaged_config_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    assert "is refused" in complaint(capsys, "explain", str(tmp_path), status=4)
    (tmp_path / "config.json").unlink()
    assert "it does not exist" in complaint(capsys, "draw", str(tmp_path), status=4)
