"""`longspan train char-lm`, `eval char-lm` and `sample` as people meet them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from longspan.checkpoints.save import save_model
from longspan.cli import main
from longspan.recipes.char_lm import phases
from longspan.recipes.char_lm.phases import Phase, Recipe
from unit.families.char_lm import config, model

TEXT = "Und so weiter: äöü. " * 60
LAST = Phase(length=64, radius=(6, 14, 10), lr=1e-2, batch=2, steps=2, end=0.0)
SMALLEST = Recipe(
    config=config(), phases=(replace(LAST, length=32, radius=(3, 7, 5)), LAST), eval_characters=40
)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(phases.RECIPES, "tiny", SMALLEST)
    Path("text.txt").write_text(TEXT, encoding="utf-8")
    save_model(model(), "model")


def told(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    found = main(list(arguments))
    printed = capsys.readouterr()
    assert found == status, printed.err
    return printed.out, printed.err


TRAIN = ("train", "char-lm", "--data", "text.txt", "--out", "run")


def test_a_model_is_trained_evaluated_and_writes(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = told(capsys, *TRAIN, "--vocabulary", "data")
    assert "bits per character on the validation split; the model is in run" in out
    assert "phase 1 of 2: windows of 32 characters" in err
    assert "phase 2 of 2: windows of 64 characters" in err
    out, _ = told(capsys, "eval", "char-lm", "run", "--data", "text.txt", "--json")
    found = json.loads(out)
    assert (found["split"], found["characters"], found["length"], found["step"]) == ("test", 68, 32_256, 512)
    assert 0 < found["bits_per_character"] < 8
    out, _ = told(capsys, "sample", "run", "--prompt", "Und", "--length", "20")
    assert out.startswith("Und")
    assert out.endswith("\n")


def test_training_again_goes_on_and_another_run_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    first = json.loads(told(capsys, *TRAIN, "--json", "-q")[0])
    again = json.loads(told(capsys, *TRAIN, "--json", "-q")[0])
    assert first["bits_per_character"] == again["bits_per_character"]
    assert [phase["steps"] for phase in again["phases"]] == [2, 2]
    _, err = told(capsys, *TRAIN, "--seed", "1", status=2)
    assert "`out` must be the folder of a run with the same settings" in err


def test_steps_minutes_and_positions_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--positions", "relative", "--steps", "6", "--memory", "10", "--json", "-q")
    found = json.loads(told(capsys, *TRAIN, *options)[0])
    assert sum(phase["steps"] for phase in found["phases"]) == 6
    assert json.loads(Path("run/config.json").read_text())["encoder"]["position_type"] == "relative"
    _, err = told(capsys, *TRAIN, "--steps", "6", "--minutes", "1", status=2)
    assert "not allowed with argument --steps" in err
    _, err = told(capsys, *TRAIN, "--minutes", "0", status=2)
    assert "must be a number of minutes above 0, but is '0'" in err


def test_a_run_has_a_name_and_takes_the_options_of_the_loop(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    boards: list[str] = []
    monkeypatch.setattr(
        "longspan.training.log._board", lambda folder, step: boards.append(folder.parent.name)
    )
    loop = ("--lr", "0.02", "--dtype", "bfloat16", "--on-nan", "skip", "--save-minutes", "0", "--tensorboard")
    out, err = told(capsys, "train", "char-lm", "--data", "text.txt", "--config", "tiny", *loop)
    assert "model and run are in char-lm-tiny" in err
    assert "the model is in char-lm-tiny" in out
    for phase, rate in ((1, 0.02), (2, 0.02)):
        run = json.loads(Path(f"char-lm-tiny/phase-{phase}/run.json").read_text())
        assert (run["optimizer"]["lr"], run["dtype"], run["on_nan"]) == (rate, "bfloat16", "skip")
    assert boards == ["phase-1", "phase-2"]
    _, err = told(capsys, *TRAIN, "--lr", "0", status=2)
    assert "`lr` must be more than 0" in err
    assert not Path("run").exists()
    _, err = told(capsys, *TRAIN, "--fsdp", status=2)
    assert "`fsdp` must be False in a single process" in err


def test_nothing_is_said_when_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, *TRAIN, "-q")[1] == ""


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("train", "char-lm", "--data", "none", "--out", "run"), 2, "`--data` must be a file or folder that"),
        (("train", "char-lm", "--data", "text.txt", "--out", "text.txt"), 2, "`--out` must be a folder"),
        (("eval", "char-lm", "none", "--data", "text.txt"), 2, "the folder of a language model of bytes"),
        (("eval", "char-lm", "model", "--data", "none"), 2, "`data` must be a file or folder that exists"),
        (("eval", "char-lm", "model", "--data", "empty"), 4, "`empty` cannot be read: it is empty"),
        (("eval", "char-lm", "model", "--data", "text.txt", "--length", "5"), 2, "`--step` must be at most"),
        (("sample", "none"), 2, "the folder of a language model of bytes"),
        (("sample", "model", "--prompt", ""), 2, "`--prompt` must be at least one character long"),
        (("sample", "model", "--temperature", "0"), 2, "`temperature` must be from 1e-06"),
        (("sample", "closed", "--prompt", "ä"), 2, "`--prompt` must be of the 3 bytes that the model knows"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], status: int, message: str
) -> None:
    Path("empty").touch()
    save_model(model(vocab_size=3, alphabet=(97, 98, 122)), "closed")
    _, err = told(capsys, *arguments, status=status)
    assert message in err
    assert err.count("\n") == 1


def test_a_seed_gives_a_text_and_greed_needs_none(capsys: pytest.CaptureFixture[str]) -> None:
    def text(*options: str) -> str:
        return told(capsys, "sample", "model", "--prompt", "abc", "--length", "30", *options)[0]

    assert text("--seed", "1") == text("--seed", "1")
    assert text("--seed", "1") != text("--seed", "2")
    assert text("--greedy", "--seed", "1") == text("--greedy", "--seed", "2") == text("--top-k", "1")


def test_what_is_written_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(capsys, "sample", "model", "--prompt", "abc", "--length", "9", "--json")
    found = json.loads(out)
    assert (found["prompt"], found["bytes"]) == ("abc", 9)
    assert 0 < len(found["text"]) <= 9
