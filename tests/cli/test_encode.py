"""`longspan encode` as people meet it: what can be checked is checked before the model reads."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from longspan.cli import main
from unit.search.folders import filled, tiny


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tiny().save(folder)
    return folder


@pytest.fixture(autouse=True)
def _home(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/models").mkdir(parents=True)
    (tmp_path / "cache/models/kept").symlink_to(model)
    (tmp_path / "model").symlink_to(model)
    filled(tmp_path / "docs", 2)


def told(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> tuple[str, str]:
    found = main(["encode", *arguments])
    printed = capsys.readouterr()
    assert found == status, printed.err
    return printed.out, printed.err


USUAL = ("docs", "--model", "model", "--out", "x.npy")


def test_vectors_are_written_and_rows_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = told(capsys, *USUAL)
    assert [line.split("\t")[0] for line in out.splitlines()] == ["0", "1"]
    assert np.load("x.npy").shape == (2, 16)
    assert err == ""
    assert told(capsys, *USUAL, "--quiet") == ("", "")
    assert json.loads(told(capsys, *USUAL, "--quiet", "--json")[0])["shape"] == [2, 16]


def test_a_model_has_the_name_that_models_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    (name,) = [one["name"] for one in json.loads(capsys.readouterr().out)]
    _, err = told(capsys, "docs", "--model", name, "--out", "x.npy", "-v")
    assert f"model {name}: {Path('cache/models/kept').absolute()}" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--out", "nowhere/x.npy"],
            "`--out` must be a file in a folder that exists, but is 'nowhere/x.npy'",
        ),
        (["--out", "docs"], "`--out` must be a file, not a folder, but is 'docs'"),
        (["--out", "docs/0.txt/x"], "`--out` must be a file in a folder that exists"),
        (["--model", "./nowhere"], "`model` must be a folder that exists, but is './nowhere'"),
        (["nowhere"], "`FILE` must be a file or folder that exists, but is 'nowhere'"),
        (["--max-file-size", "big"], "must be a size such as 500MB, 2GiB or 1000000, but is 'big'"),
        (["--max-parse-seconds", "0"], "must be a number of seconds above 0, but is '0'"),
    ],
)
def test_a_mistake_is_told_before_anything_is_read(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("a file was read")

    monkeypatch.setattr("longspan.text.documents.read", read)
    _, err = told(capsys, *USUAL, *arguments, status=2)
    assert words in err
    assert err.count("\n") == 1


def test_a_folder_without_documents_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert "documents, or folders that hold some" in told(capsys, "empty", *USUAL[1:], status=2)[1]


def test_a_file_beyond_a_limit_is_named_with_the_option_that_raises_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("docs/large.txt").write_text("words " * 5000)
    for option, limit in (("--max-file-size", "20kB"), ("--max-characters", "20K")):
        out, err = told(capsys, *USUAL, option, limit, status=3)
        assert len(out.splitlines()) == 2
        assert f"Raise {option}, or " in err
        assert err.count("large.txt") == 1
    told(capsys, *USUAL)


def test_standard_input_may_stand_among_files(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("docs/1.txt").read_bytes())))
    out, _ = told(capsys, "docs/0.txt", "-", *USUAL[1:])
    assert [Path(line.split("\t")[2]).name for line in out.splitlines()] == ["-", "0.txt"]
    piped = np.load("x.npy")[0]
    told(capsys, "docs/1.txt", *USUAL[1:])
    assert np.allclose(piped, np.load("x.npy")[0])


def test_where_nothing_could_be_read_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    Path("broken.pdf").write_bytes(b"%PDF-1.4 no more than this")
    told(capsys, "broken.pdf", *USUAL[1:], status=3)
    assert not Path("x.npy").exists()


def test_a_link_stays_a_link(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.npy").symlink_to("target.npy")
    told(capsys, *USUAL)
    assert Path("x.npy").is_symlink()
    assert np.load("target.npy").shape == (2, 16)


def test_a_device_is_written_to_and_not_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, *USUAL)
    command = [sys.executable, "-m", "longspan", "encode", *USUAL[:-1], "/dev/stdout", "--quiet"]
    assert subprocess.run(command, capture_output=True).stdout == Path("x.npy").read_bytes()
    os.mkfifo("pipe")
    assert "`--out` must be a file, not a named pipe" in told(capsys, *USUAL[:-1], "pipe", status=2)[1]
