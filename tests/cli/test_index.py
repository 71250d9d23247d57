"""`longspan index` and the ways of `longspan search`, on one index that people live with."""

import io
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from cli.test_search import told
from longspan.cli import terminal
from longspan.search.index import Index
from longspan.search.library import place
from longspan.search.lock import writing
from unit.search.folders import filled, tiny

WORDS = ("--mode", "bm25")
SENTENCES = "The tenant pays on Monday. Late rent costs a fee of nine dollars. Pets are welcome."
TEXT = f"# Lease\n\n## Rent\n\n{SENTENCES}\n"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    filled(tmp_path / "docs", 3)
    Path("docs/lease.md").write_text(TEXT, encoding="utf-8")


def data(capsys: pytest.CaptureFixture[str], *arguments: str, status: int | None = 0) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(told(capsys, *arguments, "--json", status=status)[0])
    return answer


def test_paths_are_added_to_one_index_and_nothing_is_read_twice(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told(capsys, "index", "docs/0.txt", "docs/lease.md", "--words-only")
    shown = data(capsys, "search", "late fee", "docs/0.txt", "docs/1.txt", *WORDS, status=None)
    assert {Path(hit["file"]).name for hit in shown["results"]} <= {"0.txt", "1.txt"}
    assert (shown["update"]["added"], shown["update"]["unchanged"]) == (1, 1)
    monkeypatch.setattr("longspan.search.compare.digest", lambda path: pytest.fail(f"{path} is read again"))
    for paths in ([], ["docs/lease.md"]):
        out, err = told(capsys, "search", "late fee", *paths, *WORDS)
        assert "1. docs/lease.md:5" in out
        assert not err
    listed = json.loads(told(capsys, "index", "--list", "--json")[0])
    assert [(index["name"], index["files"], index["read"]) for index in listed] == [("default", 3, 0.0)]


def test_an_index_has_a_name_or_a_folder_and_a_model_a_default_one(tmp_path: Path) -> None:
    home = tmp_path / "cache" / "indexes"
    assert place(None, None) == place(None, "default") == home / "default"
    assert place(None, "other").parent == home
    assert len({place(None, "other"), place(None, "third"), place(None, None)}) == 3
    assert place("work", None) == place("work", "other") == home / "work"
    assert place("./work", None) == place(str(tmp_path / "work"), None) == tmp_path / "work"
    assert place("docs", None) == tmp_path / "docs"


def test_files_are_shown_removed_and_pruned(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", "--words-only", "--index", "work")
    shown = data(capsys, "index", "--show", "--index", "work")
    assert [(Path(file["file"]).name, file["read"]) for file in shown["contents"]] == [
        ("0.txt", False), ("1.txt", False), ("2.txt", False), ("lease.md", False),
    ]  # fmt: skip
    assert shown["sizes"]
    assert shown["roots"] == [str(Path("docs").absolute())]
    out, _ = told(capsys, "index", "--show", "--index", "work")
    assert "words only so far" in out
    assert "1 removed" in told(capsys, "index", "--remove", "docs/1.txt", "--index", "work")[0]
    Path("docs/2.txt").unlink()
    assert data(capsys, "index", "--prune", "--index", "work")["pruned"] == 1
    assert data(capsys, "index", "--words-only", "--index", "work")["added"] == 1  # docs/1.txt comes back
    _, err = told(capsys, "index", "--remove", "nowhere", "--index", "work")
    assert "holds none of nowhere" in err


def test_a_rebuilt_index_holds_what_was_added_before(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs/0.txt", "--words-only")
    told(capsys, "index", "docs/1.txt", "--words-only", "--tokens", "off")
    made = data(capsys, "index", "--rebuild", "--words-only", "--check")
    assert (made["files"], made["added"]) == (2, 2)


def test_a_damaged_index_is_listed_and_rebuilt_from_the_paths_that_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told(capsys, "index", "docs", "--words-only", "--index", "work")
    (place("work", None) / "index.sqlite").write_bytes(b"x" * 4096)
    assert "is damaged" in told(capsys, "index", "--list")[0]
    _, err = told(capsys, "index", "--index", "work", "--rebuild", status=2)
    assert "cannot tell what that was. Name files and folders" in err
    assert data(capsys, "index", "docs", "--words-only", "--index", "work", "--rebuild")["files"] == 4


def test_changes_are_watched_until_ctrl_c(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write() -> None:
        Path("docs/0.txt").write_text("Another text.")
        Path("docs/new.txt").write_text("A new text.")

    steps: Iterator[Callable[[], None]] = iter([write, Path("docs/1.txt").unlink, lambda: None])

    def sleep(seconds: float) -> None:
        assert seconds == 3
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr(time, "sleep", sleep)
    out, err = told(capsys, "index", "docs", "--words-only", "--watch", "3")
    changes = [line.split(" ", 1)[1] for line in out.splitlines()[1:]]
    kinds = [(change.split()[0], Path(change).name) for change in changes]
    assert kinds == [("added", "new.txt"), ("changed", "0.txt"), ("removed", "1.txt")]
    assert "Ctrl-C ends it" in err


def test_words_are_shown_first_and_the_model_reads_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny().save("model")
    command = ("search", "late fee", "docs", "--model", "model", "--top", "1")
    _, err = told(capsys, *command, "--now", status=None)
    assert "read 0% by meaning; the rest by words" in err
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    embed = Index.embed

    def stop(*_: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Index, "embed", stop)
    out, err = told(capsys, *command, status=130)
    assert out.count("1. docs/") == 2
    assert "by words so far; the model is reading" in err
    assert "all but what was just being read is kept" in err
    monkeypatch.setattr(Index, "embed", embed)
    out, err = told(capsys, *command, status=None)
    assert out.count("1. docs/") == 2
    assert "the model has read" in err
    out, err = told(capsys, *command, status=None)
    assert (out.count("1. docs/"), err) == (1, "")
    assert all(file["read"] for file in data(capsys, "index", "--show", "--model", "model")["contents"])


def test_only_what_is_searched_is_read_by_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    tiny().save("model")
    told(capsys, "index", "docs", "--words-only", "--model", "model")
    _, err = told(capsys, "search", "Rome", "docs/1.txt", "--model", "model", status=None)
    assert "by words" not in err
    shown = data(capsys, "index", "--show", "--model", "model")
    assert [Path(file["file"]).name for file in shown["contents"] if file["read"]] == ["1.txt"]
    assert data(capsys, "index", "--model", "model")["share_read"] == 1


def test_an_index_that_another_process_changes_is_searched_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longspan.cli.search.WAIT", 0.0)
    told(capsys, "index", "docs", "--words-only")
    with writing(place(None, None)):
        out, err = told(capsys, "search", "late fee", "docs", "--top", "1", status=None)
    assert "1. docs/lease.md:5" in out
    assert err.count("is being changed by another process") == 1


def test_who_waits_for_another_process_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longspan.cli.index.NOTICE", 0.0)
    assert "another process" not in told(capsys, "index", "docs", "--words-only")[1]
    held = writing(place(None, None))
    held.__enter__()
    monkeypatch.setattr(time, "sleep", lambda seconds: held.__exit__(None, None, None))
    out, err = told(capsys, "index", "--remove", "docs/0.txt")
    assert "another process is changing the index; waiting for it." in err
    assert "1 removed" in out


def test_searching_by_words_needs_no_torch() -> None:
    program = (
        "import sys; from longspan.cli import main; status = main(sys.argv[1:]);"
        "assert 'torch' not in sys.modules; sys.exit(status)"
    )
    command = [sys.executable, "-c", program, "search", "late fee", "docs", *WORDS]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1. docs/lease.md:5" in done.stdout


def test_many_queries_are_answered_together(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ['{"question": "late fee"}', "", '{"question": 3}', "rent before:noon", "pets", "-fee", "{bad"]
    Path("asked.jsonl").write_text("\n".join(lines))
    command = ("search", "--queries", "asked.jsonl", "docs", *WORDS)
    out, err = told(capsys, *command, "--json", status=3)
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["query"] for answer in answers] == ["late fee", *lines[2:]]
    for answer in (answers[0], answers[3]):
        assert Path(answer["results"][0]["file"]).name == "lease.md"
    problems = {3: "it must hold a text as", 4: "must be a day", 6: "some words to look for", 7: "not JSON"}
    assert {answer["line"] for answer in answers if "error" in answer} == {*problems}
    assert all(problems[answer["line"]] in answer["error"] for answer in answers if "error" in answer)
    assert [line.split(":")[2] for line in err.splitlines() if "asked.jsonl" in line] == ["3", "4", "6", "7"]
    assert told(capsys, *command, status=3)[0].count("==> ") == 2
    Path("asked.jsonl").write_text("-fee\n")
    _, err = told(capsys, *command, status=2)
    assert "asked.jsonl:1: " in err
    assert "must be a file that holds queries" in err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"late fee\n")))
    out, _ = told(capsys, "search", "--queries", "-", *WORDS)
    assert out.startswith("==> late fee <==\n\n1. docs/lease.md:5")


def test_the_answer_is_marked_and_cited_and_shown_with_its_context(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told(capsys, "index", "docs", "--words-only")
    out, _ = told(capsys, "search", "what does a late rent cost as a fee?", *WORDS, "--top", "1")
    first, headings, passage = out.splitlines()
    assert first.startswith("1. docs/lease.md:5  (words ")
    assert headings.strip() == "Lease"
    assert "»Late rent costs a fee of nine dollars.«" in passage
    out, _ = told(capsys, "search", "late fee", *WORDS, "--top", "1", "--context", "2")
    assert [line.strip() for line in out.splitlines()[2:4]] == ["## Rent", ""]
    (hit,) = data(capsys, "search", "late fee", *WORDS, "--top", "1", "--context", "0")["results"]
    assert hit["context"] == TEXT.splitlines()[4]
    assert TEXT[hit["context_start"] :].startswith(hit["context"])
    assert TEXT[hit["answer_start"] : hit["answer_end"]] == "Late rent costs a fee of nine dollars."


def test_no_good_match_is_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", "--words-only")
    out, _ = told(capsys, "search", "zebra", *WORDS, status=1)
    assert out == "nothing found for 'zebra'\n"
    assert told(capsys, "search", "late fee", *WORDS, "--min-score", "99", status=1)[0] == (
        "nothing found for 'late fee'\n"
    )


def test_files_are_chosen_by_a_pattern(capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "index", "docs", "--words-only")
    for options in (("--glob", "*.txt"), ("--glob", "docs/?.txt", "--glob", "no*")):
        shown = data(capsys, "search", "the fee for rent of London", *WORDS, *options, status=None)
        assert {Path(hit["file"]).suffix for hit in shown["results"]} <= {".txt"}


def test_a_result_is_opened_without_a_shell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []

    class Program:
        returncode: int | None = None

        def __init__(self, command: list[str], **options: object) -> None:
            assert "shell" not in options
            started.append(command)

    monkeypatch.setattr(os, "name", "posix")
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    monkeypatch.setattr(subprocess, "Popen", Program)
    told(capsys, "search", "--open", "late fee", "docs", *WORDS)
    assert started[0][1:] == [str(Path("docs/lease.md").absolute())]
    _, err = told(capsys, "search", "--open", "9", "late fee", *WORDS)
    assert (len(started), err) == (1, "longspan: there is no result 9 to open.\n")


def test_names_and_titles_of_files_cannot_drive_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not while they are watched, nor in errors, nor as the name of the index."""
    evil = Path("docs/\033]0;evil\a")
    evil.mkdir()
    (evil / "a.md").write_text("# The \033[1JTitle\n\nSome words.")
    (evil / "\033[2J.pdf").write_bytes(b"%PDF-1.4 no more than this")

    def sleep(seconds: float) -> None:
        if (evil / "\033[3J.pdf").exists():
            raise KeyboardInterrupt
        (evil / "\033[3J.pdf").write_bytes(b"%PDF-1.4 nor this")

    monkeypatch.setattr(time, "sleep", sleep)
    index = ("--words-only", "--index", "./\033[4J")
    out, err = told(capsys, "index", str(evil), *index, "--watch")
    assert all(name in err for name in ("[2J.pdf", "[3J.pdf", "evil"))
    with closing(sqlite3.connect("\033[4J/index.sqlite")) as base, base:
        base.execute("UPDATE passages SET line = 9")
    for command in (("index", *index, "--check"), ("index", "--remove", str(evil / "b"), *index)):
        more = told(capsys, *command, status=4 if "--check" in command else 0)
        out, err = out + more[0], err + more[1]
    assert "[1JTitle has changed" in err
    assert "\033" not in out + err


def test_a_little_that_is_not_read_is_not_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tiny().save("model")
    told(capsys, "index", "docs", "--model", "model")
    Path("docs/new.txt").write_text("New.")
    out, _ = told(capsys, "index", "--model", "model", "--words-only")
    assert ", 99% read by the model; 1 added" in out
    assert ", 99% read by " in told(capsys, "index", "--list")[0]


def test_what_is_missing_of_files_is_told_and_an_old_encoding_is_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longspan.cli.updating.GAPS", 2)
    Path("letter.txt").write_bytes(
        "Hiermit wird der Vertrag gekündigt. Die Übergabe folgt.".encode("latin-1")
    )
    for number in range(3):
        Path("docs", f"{number}.html").write_text(f"<p>Page {number}<p hidden>secret")
    _, err = told(capsys, "index", "docs", "letter.txt", "--words-only")
    assert err.count("6 characters of hidden text left out") == 2
    assert "something is missing of 1 more file; --json names them." in err
    out, _ = told(capsys, "search", "gekündigt", *WORDS)
    assert "1. letter.txt:1" in out
    assert "gekündigt" in out
    assert "secret" not in told(capsys, "search", "secret", *WORDS, status=None)[0].replace("'secret'", "")
    Path("docs/a.html").write_text("<p>Another page<p hidden>secret")
    found = data(capsys, "index", "docs", "--words-only")
    assert [(Path(gap["file"]).name, gap["reason"]) for gap in found["gaps"]] == [
        ("a.html", "6 characters of hidden text left out")
    ]
