"""`longspan corpus` and `longspan pretrain`."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import longspan
from longspan.cli import main
from unit.corpus.small import written

pytestmark = pytest.mark.usefixtures("_one_thread")
SMALL = [f"--set={field}" for field in ("width=16", "layers=2", "heads=2", "feed_forward=32")]


@pytest.fixture
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_a_corpus_is_built_and_a_new_model_trained_on_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, made, out = written(tmp_path / "texts"), str(tmp_path / "corpus"), tmp_path / "model"
    command = ["corpus", str(texts), "--out", made, "--tokenizer", "bpe", "--vocab", "300"]
    assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["documents"], facts["vocab_size"]) == (12, 300)
    assert main(command) == 0
    assert "documents   12" in capsys.readouterr().out
    train = ["pretrain", "--config", "bert-base", *SMALL, "--length", "50", "--data", made, "--out", str(out)]
    train += ["--steps", "2", "--batch-tokens", "300", "--masking", "word", "--rate", "0.3"]
    assert main([*train, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert "2 steps" in told
    assert "<mask>" in told
    assert not out.exists()
    assert main([*train, "--json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["training"]["steps"] == 2
    assert longspan.load(out).task == "fill"
    more = ["pretrain", "--from", str(out), "--data", str(texts), "--out", str(tmp_path / "more"), "--frozen"]
    assert main([*more, "--epochs", "1", "-q"]) == 0
    assert "written to" in capsys.readouterr().out
    assert (tmp_path / "more/corpus/corpus.json").is_file()


def test_a_run_has_a_name_and_takes_the_options_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    boards: list[Path] = []
    monkeypatch.setattr("longspan.training.log._board", lambda folder, step: boards.append(folder))
    monkeypatch.chdir(tmp_path)
    texts = str(written(tmp_path / "texts"))
    new = ["pretrain", "--config", "roberta-base", *SMALL, "--length", "24", "--data", texts, "--steps", "1"]
    assert main([*new, "--tokenizer", "bpe", "--vocab", "300", "-q"]) == 0
    assert main(["lengthen", "roberta-base-texts", "--to", "200", "--out", "long"]) == 0
    frozen = ["pretrain", "--from", "long", "--data", texts, "--frozen"]
    assert main(frozen) == 0
    assert "model and run are in long-texts-frozen" in capsys.readouterr().err
    run = json.loads((tmp_path / "long-texts-frozen/run/run.json").read_text())
    assert (run["epochs"], run["steps"], run["schedule"]["name"]) == (1, None, "Polynomial")
    loop = ["--dtype", "bfloat16", "--on-nan", "rollback", "--schedule", "cosine", "--tensorboard", "-q"]
    assert main([*frozen, "--out", "other", *loop]) == 0
    run = json.loads((tmp_path / "other/run/run.json").read_text())
    assert (run["dtype"], run["on_nan"], run["schedule"]["name"]) == ("bfloat16", "rollback", "Cosine")
    assert boards == [tmp_path / "other/run/tensorboard"]
    assert main([*frozen, "--seed", "1"]) == 2
    assert "`out` must be that of a run whose `seed` is 1" in capsys.readouterr().err


def test_files_that_cannot_be_read_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = written(tmp_path / "texts", 3)
    (texts / "bad.jsonl").write_text("{")
    made = str(tmp_path / "corpus")
    assert main(["corpus", str(texts), "--out", made, "--tokenizer", "bpe", "--vocab", "300"]) == 3
    assert "line 1 is not JSON" in capsys.readouterr().err


def test_presets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pretrain", "--config", "help"]) == 0
    listed = capsys.readouterr().out
    assert "longformer-base" in listed
    assert "led-base" not in listed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--config", "bert-base", "--out", "x", "--steps", "1"], "`--data` is missing"),
        (["--config", "bert-base", "--data", ".", "--out", "x", "--lr", "0"], "`lr` must be more than 0"),
        (
            ["--from", "m", "--data", ".", "--out", "x", "--set", "a=1"],
            "`--set` must be left out with --from",
        ),
        (["--from", "m", "--data", ".", "--out", "x", "--tokenizer", "bpe", "--steps", "1"], "--tokenizer"),
        (["--config", "bert-base", "--data", "nowhere", "--out", "x", "--steps", "1"], "`--data` must be"),
        (["--config", "bert-base", "--data", ".", "--out", "x", "--steps", "1"], "There is no tokenizer"),
    ],
)
def test_mistakes_are_told_before_work_begins(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pretrain", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
