"""Files of every kind become texts, one after the other, and can be taken up at any place."""

import gzip
import json
from pathlib import Path

import pytest

from longspan.corpus.fasta import sequences
from longspan.corpus.texts import START, Place, Rules, texts
from longspan.errors import DocumentError, InputError
from longspan.text.files.parsed import Refusal
from unit.text import files as made


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """A file of each way to be read."""
    (tmp_path / "a.txt").write_text("one two\nthree")
    (tmp_path / "b.html").write_text("<p>four</p>")
    (tmp_path / "c.jsonl").write_text('{"text": "five"}\n\n"six"\n')
    with gzip.open(tmp_path / "d.fa.gz", "wt") as file:
        file.write(">x\nACGT\nacgtr\n>y\nNNNN\n")
    with gzip.open(tmp_path / "e.txt.gz", "wt") as file:
        file.write("seven\neight\n")
    (tmp_path / "f.pdf").write_bytes(made.pdf(["nine"]))
    return sorted(tmp_path.iterdir())


def found(files: list[Path], rules: Rules = Rules(), begin: Place = START) -> list[str]:  # noqa: B008
    return [text.strip() for _, text in texts(files, rules, begin) if isinstance(text, str)]


def test_every_kind_of_file_gives_its_texts(files: list[Path]) -> None:
    assert found(files) == ["one two\nthree", "four", "five", "six", "ACGTACGTN", "seven\neight", "nine"]


def test_lines_of_plain_texts_are_texts_if_asked(files: list[Path]) -> None:
    wanted = ["one two", "three", "four", "five", "six", "ACGTACGTN", "seven", "eight", "nine"]
    assert found(files, Rules(lines=True)) == wanted


def test_reading_goes_on_behind_any_place(files: list[Path]) -> None:
    rules = Rules(lines=True, stretch=4)
    whole = list(texts(files, rules))
    for number, (place, _) in enumerate(whole, 1):
        assert list(texts(files, rules, place)) == whole[number:]


def test_a_field_of_json_has_the_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"body": "yes", "text": "no"}))
    assert found([path], Rules(field="body")) == ["yes"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.jsonl", b'{"text": "good"}\n{"text": 3}\n', 'line 2 has no text in "text"'),
        ("a.jsonl", b'{"text": "good"}\n{broken\n', "line 2 is not JSON"),
        ("a.jsonl", b'{"text": "good"}\n\xff\n', "line 2 is not UTF-8"),
        ("a.fa", b">x\nACGT\n123\n", "line 3 is no sequence of bases"),
        ("a.txt", bytes(range(256)) * 40, "it looks binary"),
        ("a.txt.gz", b"no gzip at all", "it is no gzip file"),
        ("a.txt.gz", gzip.compress(b"text " * 999, mtime=0)[:-20], "it is no gzip file, or was cut off"),
        ("a.txt.gz", gzip.compress(bytes(range(256)) * 40, mtime=0), "it looks binary"),
        ("a.pdf", b"%PDF-1.4 nothing", "cannot be read"),
    ],
)
def test_a_bad_file_gives_its_good_texts_and_a_clear_error(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "z.txt").write_text("the next file")
    *first, (place, error), last = list(texts(sorted(tmp_path.iterdir()), Rules()))
    assert [text for _, text in first] in ([], ["good"])
    assert isinstance(error, DocumentError)
    assert reason in str(error)
    assert name in str(error)
    assert (place, last[1]) == (Place(1), "the next file")


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longspan.corpus.texts.LONGEST", 10)
    (tmp_path / "a.jsonl").write_text('"' + "x" * 20 + '"')
    ((_, error),) = texts([tmp_path / "a.jsonl"], Rules())
    assert "line 1 has more than 10 bytes" in str(error)


def test_a_large_text_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PART", "LARGE", "REACH", "CHUNK"):
        monkeypatch.setattr(f"longspan.text.parts.{name}", 64)
    (tmp_path / "a.txt").write_text("word and line\n" * 20)
    parts = [text for _, text in texts([tmp_path / "a.txt"], Rules())]
    assert len(parts) > 3
    assert "".join(map(str, parts)) == "word and line\n" * 20


def test_sequences_are_cut_into_stretches() -> None:
    assert list(sequences([">a", "ACG", "TA", ">b", "C"], 2)) == ["AC", "GT", "A", "C"]
    with pytest.raises(InputError, match="`stretch` must be at least 1, but is 0"):
        list(sequences([], 0))
    with pytest.raises(InputError, match="`stretch` must be at least 1"):
        Rules(stretch=0)
    with pytest.raises(Refusal, match="line 1 is no sequence"):
        list(sequences(["AC GT"]))
