"""Questions about anybody's documents, with the exact words that answer them, read from JSONL."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from longspan.errors import InputError, LongspanError, bad, guess, missing
from longspan.search.update import listed
from longspan.text.documents import Limits, read
from longspan.text.walk import walk

STANDARD_INPUT = "-"


class Question(NamedTuple):
    """A question; `document` is None and `answers` is empty if nothing in the collection answers it."""

    id: str
    text: str
    kind: str
    document: int | None
    answers: tuple[str, ...]
    "With one space for every run of white space."


class Questions(NamedTuple):
    """Documents for one index, questions about them, and what is wrong with either."""

    name: str
    roots: list[Path]
    files: dict[Path, int]
    "Each file's document; files of the same text are one document."
    texts: list[str]
    questions: list[Question]
    warnings: list[str]

    def label(self, path: Path) -> str:
        """A file's path inside its folder."""
        return next(str(path.relative_to(root)) for root in self.roots if path.is_relative_to(root))


def squeeze(text: str) -> str:
    """The text with one space for every run of white space, and none at its ends."""
    return " ".join(text.split())


def load_questions(
    file: str | Path, documents: Sequence[str | Path], limit: int | None = None, limits: Limits | None = None
) -> Questions:
    """The questions of a JSONL file about the files in folders, each of which may be `name=folder`.

    A question's `file` is relative to one of the folders; with a name, to `name/`.
    """
    source = Path(file).expanduser()
    if not source.is_file() and str(file) != STANDARD_INPUT:
        raise bad("--questions", "a file of JSON lines, or - for standard input", str(file))
    folders = [_folder(str(text)) for text in documents]
    if not folders:
        raise missing("--documents", "the folders that the questions are about")
    roots = listed([root for _, root in folders])
    warnings: list[str] = []
    entries = list(_entries(source))
    files, texts = _texts(roots, warnings, limits or Limits())
    squeezed = dict[int, str]()

    def found(number: int, answer: str) -> bool:
        return answer in squeezed.setdefault(number, squeeze(texts[number]))

    questions: list[Question] = []
    lines = dict[str, int]()
    for line, entry in entries:
        place = f"{source.name}, line {line}"
        text, name, answers, id, kind = _fields(entry, place, line)
        if (first := lines.setdefault(id, line)) != line:
            raise InputError(f"{place}: the id {id!r} is that of line {first}. Give each question its own.")
        document = None if name is None else _document(name, folders, files, place)
        if document is not None:
            absent = [answer for answer in answers if not found(document, answer)]
            warnings += [f"{place}: {name} does not hold the answer {answer!r}." for answer in absent]
            answers = tuple(answer for answer in answers if answer not in absent)
            if not answers:
                warnings.append(f"{place}: {id!r} is left out. Copy its answer from the file's text.")
                continue
        questions.append(Question(id, text, kind, document, answers))
    if not questions:
        raise bad("--questions", "a file with a question whose answer stands in the documents", str(file))
    return Questions(source.stem, roots, files, texts, questions[:limit], warnings)


def _folder(text: str) -> tuple[str, Path]:
    """The prefix and the folder that `folder` or `name=folder` means."""
    prefix, equals, folder = text.partition("=")
    if not equals or Path(text).expanduser().exists():
        prefix, folder = "", text
    path = Path(folder).expanduser().absolute()
    if not path.is_dir():
        raise bad("--documents", "a folder or name=folder", text)
    return prefix, path


def _texts(roots: Sequence[Path], warnings: list[str], limits: Limits) -> tuple[dict[Path, int], list[str]]:
    files, numbers = dict[Path, int](), dict[str, int]()
    for path in walk(roots, failed=lambda path, reason: warnings.append(f"{path}: {reason}")):
        try:
            text = read(path, limits=limits).text
        except LongspanError as error:
            warnings.append(str(error))
            continue
        files[path] = numbers.setdefault(text, len(numbers))
    return files, list(numbers)


def _entries(source: Path) -> Iterator[tuple[int, dict[str, object]]]:
    try:
        data = sys.stdin.buffer.read() if str(source) == STANDARD_INPUT else source.read_bytes()
        lines = data.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise bad(
            "--questions", "a file in UTF-8", f"{source} ({error.reason} at byte {error.start})"
        ) from None
    for line, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            entry = json.loads(text)
        except ValueError as error:
            raise InputError(
                f"{source.name}, line {line} is not JSON: {error}. Write one object on each line."
            ) from None
        if not isinstance(entry, dict):
            raise bad(f"{source.name}, line {line}", "an object with `file`, `question` and `answers`", entry)
        yield line, entry


def _fields(
    entry: dict[str, object], place: str, line: int
) -> tuple[str, str | None, tuple[str, ...], str, str]:
    """question, file, answers, id and kind of a line."""
    text, name, answers = entry.get("question"), entry.get("file"), entry.get("answers", [])
    if not isinstance(text, str) or not text.strip():
        raise bad(f"question` of `{place}", "a text", text)
    if name is not None and not isinstance(name, str):
        raise bad(f"file` of `{place}", "a path in the documents or null", name)
    if not isinstance(answers, list) or not all(isinstance(answer, str) for answer in answers):
        raise bad(f"answers` of `{place}", "a list of texts", answers)
    squeezed = tuple(dict.fromkeys(filter(None, map(squeeze, answers))))
    if (name is None) == bool(squeezed):
        requirement = "given with a file, and only then"
        raise bad(f"answers` of `{place}", requirement, answers, "Without an answer, `file` is null.")
    return text, name, squeezed, str(entry.get("id", line)), str(entry.get("kind") or "")


def _document(name: str, folders: Sequence[tuple[str, Path]], files: dict[Path, int], place: str) -> int:
    for prefix, root in folders:
        if not prefix or name.startswith(f"{prefix}/"):
            path = Path(os.path.normpath(root / name.removeprefix(f"{prefix}/" if prefix else "")))
            if path in files:
                return files[path]
    nearest = guess(Path(name).name, [path.name for path in files])
    repair = nearest or "Give its folder, as name=folder if need be."
    raise bad(f"file` of `{place}", "a readable file below --documents", name, repair)


def warn(questions: Questions) -> None:
    """Say on stderr what is wrong with questions and documents."""
    for warning in questions.warnings:
        print(f"longspan: {warning}", file=sys.stderr)
