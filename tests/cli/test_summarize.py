"""`longspan summarize` as people meet it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

import longspan
from longspan.cli import main
from unit.tasks.tiny import CORPUS, LONG, summariser

USUAL = ("--model", "model", "--max-new-tokens", "7", "--num-beams", "2")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    summariser().save(folder)
    return folder


@pytest.fixture(autouse=True)
def _home(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model").symlink_to(model)
    Path("docs").mkdir()
    Path("docs/one.txt").write_text(CORPUS[0])
    Path("docs/two.md").write_text(CORPUS[1])


def told(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    found = main(["summarize", *arguments])
    printed = capsys.readouterr()
    assert found == status, printed.err
    return printed.out, printed.err


def test_a_file_is_summarised(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = told(capsys, "docs/one.txt", *USUAL, "--json")
    (found,) = json.loads(out)["results"]
    expected = longspan.load("model").summarize(CORPUS[0], max_new_tokens=7, num_beams=2)
    assert found == {"file": str(Path("docs/one.txt").absolute())} | expected[0]
    assert err == ""
    out, err = told(capsys, "docs/one.txt", *USUAL)
    shown = "".join(c if c.isprintable() else "�" for c in found["summary_text"].strip(" "))
    assert (out, err) == (shown + "\n", "")


def test_several_files_have_headings(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(capsys, "docs", *USUAL)
    blocks = out.removesuffix("\n").split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [
        f"==> {Path(name).absolute()} <==" for name in ("docs/one.txt", "docs/two.md")
    ]
    alone, _ = told(capsys, "docs/two.md", *USUAL)
    assert blocks[1].splitlines()[1] == alone.removesuffix("\n")


def test_words_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    whole, _ = told(capsys, "docs", *USUAL)
    stream, _ = told(capsys, "docs", *USUAL, "--stream")
    assert [line.rstrip(" ") for line in stream.split("\n")] == whole.split("\n")


def test_standard_input_and_a_query_are_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(CORPUS[2].encode())))
    out, _ = told(capsys, "-", *USUAL, "--query", "Who?", "--json")
    (found,) = json.loads(out)["results"]
    expected = longspan.load("model").summarize(CORPUS[2], max_new_tokens=7, num_beams=2, query="Who?")
    assert found == {"file": "-"} | expected[0]


def test_files_that_fail_leave_the_others_alone(capsys: pytest.CaptureFixture[str]) -> None:
    Path("docs/long.txt").write_text(LONG)
    Path("docs/empty.txt").write_text("")
    Path("docs/broken.pdf").write_bytes(b"%PDF-1.4 no more than this")
    out, err = told(capsys, "docs", *USUAL, "--json", status=3)
    found = json.loads(out)
    assert [Path(one["file"]).name for one in found["results"]] == ["one.txt", "two.md"]
    reasons = {Path(one["file"]).name: one["reason"] for one in found["failed"]}
    assert set(reasons) == {"broken.pdf", "empty.txt", "long.txt"}
    assert reasons["empty.txt"] == "the document must be a text with something in it, but is ''."
    assert "the document must be at most 64 tokens long, but is " in reasons["long.txt"]
    assert "Cut it (--truncate), or take a model with more positions." in err
    out, _ = told(capsys, "docs/long.txt", *USUAL, "--truncate", "--json")
    assert json.loads(out)["results"][0]["truncated"] > 0


def test_mistakes_are_told_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = told(capsys, "docs/one.txt", status=2)
    assert err.startswith("longspan: `--model` is missing: it must be a model that writes summaries. Give")
    for wrong, message in (
        (("--num-beams", "0"), "argument --num-beams: must be a whole number from 1, but is '0'"),
        (
            ("--max-new-tokens", "3", "--min-new-tokens", "4"),
            "`min_new_tokens` must be at most `max_new_tokens`, 3",
        ),
        (("--query", ""), "`query` must be a text with something in it"),
        (("--json", "--stream"), "not allowed with"),
        (("nowhere.txt",), "`FILE` must be a file or folder that exists"),
    ):
        out, err = told(capsys, "docs/one.txt", "--model", "model", *wrong, status=2)
        assert message in err
        assert out == ""


def test_options_of_generation_are_transformers(capsys: pytest.CaptureFixture[str]) -> None:
    options: dict[str, Any] = {"repetition_penalty": 3.0, "encoder_no_repeat_ngram_size": 1}
    options |= {"suppress_tokens": [9, 11], "renormalize_logits": True, "early_stopping": False}
    expected = longspan.load("model").summarize(CORPUS[0], max_new_tokens=7, num_beams=2, **options)
    plain = longspan.load("model").summarize(CORPUS[0], max_new_tokens=7, num_beams=2)
    words = [
        "--repetition-penalty",
        "3",
        "--encoder-no-repeat-ngram-size",
        "1",
        "--suppress-tokens",
        "9",
        "11",
    ]
    words += ["--renormalize-logits", "--no-early-stopping"]
    out, _ = told(capsys, "docs/one.txt", *USUAL, *words, "--json")
    assert json.loads(out)["results"][0]["summary_text"] == expected[0]["summary_text"]
    assert expected != plain


def test_what_is_sampled_depends_on_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    draws = [
        told(capsys, "docs/one.txt", *USUAL, "--do-sample", "--top-k", "40", "--seed", seed)[0]
        for seed in ("1", "1", "2")
    ]
    assert draws[0] == draws[1] != draws[2]
