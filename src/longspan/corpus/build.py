"""Documents to a corpus: part by part, so that memory stays small and a killed run goes on."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from longspan.corpus.store import (
    MANIFEST,
    PLAN,
    TOKENIZER,
    VERSION,
    Corpus,
    dtype_of,
    fingerprint,
    part_name,
    read_notes,
    text_hash,
    write_part,
)
from longspan.corpus.texts import START, SUFFIXES, Place, Rules, texts
from longspan.errors import DocumentError, bad, refused, whole
from longspan.formats.atomic import as_json, locked, write_text
from longspan.formats.files import read_json
from longspan.progress import Progress, progress_bar
from longspan.shapes import IntArray
from longspan.text.tokenizer import Tokenizer
from longspan.text.walk import walk

PART_TOKENS = 1 << 22
"""Tokens after which a part is written; a kill loses the work of one."""
TOGETHER = 1 << 20
"""Characters that are tokenized at once."""
Paths = Iterable[str | os.PathLike[str]]
DEFAULT = Rules()
_OURS = re.compile(rf"part-\d+\.safetensors|{MANIFEST}|{TOKENIZER}|\..*\.tmp")
"""What may be there without a plan: a run was killed when it had hardly begun."""


def build_corpus(
    data: Paths,
    out: str | os.PathLike[str],
    tokenizer: Tokenizer,
    *,
    rules: Rules = DEFAULT,
    learnt: str = "",
    part_tokens: int = PART_TOKENS,
    force: bool = False,
    progress: bool | None = None,
) -> Corpus:
    """The texts of files and folders as tokens, in the folder `out`.

    A run that was killed goes on where its last whole part ends, and a finished corpus is only opened, if
    data, tokenizer and rules are the same; else it is an error, unless `force` replaces what is there. A file
    that cannot be read is left out, and told in `Corpus.failed`. `learnt` is noted beside the tokenizer.
    """
    whole("part_tokens", part_tokens, 1)
    files, failed = found_files(data)
    home = Path(out).expanduser().absolute()
    plan: dict[str, Any] = {
        "version": VERSION,
        "dtype": dtype_of(tokenizer.vocab_size),
        "tokenizer": fingerprint(tokenizer),
        "vocab_size": tokenizer.vocab_size,
        "learnt": learnt,
        "rules": asdict(rules),
        "part_tokens": part_tokens,
        "files": len(files),
        "data": _digest(files),
    }
    home.mkdir(parents=True, exist_ok=True)
    with locked(home, "is being filled by another process"):
        if not _is_same(home, plan, force):
            _clear(home, plan, tokenizer)
        if (home / MANIFEST).is_file():
            return Corpus.open(home)
        builder = Builder(home, tokenizer, plan, failed=failed)
        total = sum(_size(path) for path in files)
        with progress_bar(total, "bytes", shown=progress, scale=True) as bar:
            builder.add_all(files, rules, bar)
        builder.finish()
    return Corpus.open(home)


def found_files(data: Paths) -> tuple[list[Path], list[str]]:
    """All files of training data, and what is said of those that cannot be opened."""
    failed: list[str] = []
    given = [data] if isinstance(data, str | os.PathLike) else list(data)
    files = list(walk(given, more=SUFFIXES, failed=lambda path, why: failed.append(f"{path}: {why}")))
    if not files:
        repair = "Give text, .jsonl, FASTA, or documents that Longspan reads."
        raise bad("data", "files, or folders with files, that can be read", list(map(str, given)), repair)
    return files, failed


@dataclass
class Builder:
    """The part that is being made, and what there is of the others."""

    home: Path
    tokenizer: Tokenizer
    plan: dict[str, Any]
    failed: list[str]
    names: list[str] = field(default_factory=list)
    characters: int = 0
    tokens: list[IntArray] = field(default_factory=list)
    hashes: list[int] = field(default_factory=list)
    size: int = 0
    place: Place = START

    def __post_init__(self) -> None:
        for path in self.home.glob(".part-*.tmp"):  # of a run that was killed
            path.unlink()
        while (path := self.home / part_name(len(self.names))).is_file():
            match read_notes(path):
                case {"place": [int(file), int(text)], "characters": int(count), "failed": list(failed)}:
                    self.place, self.characters = Place(file, text), count
                    self.failed = [*map(str, failed)]
                case _:
                    raise refused(path, "it does not say where it ends", "Give --force to start again.")
            self.names.append(path.name)

    def add_all(self, files: Sequence[Path], rules: Rules, bar: Progress) -> None:
        """Add the texts behind the last part."""
        done = self.place.file
        bar.update(sum(_size(path) for path in files[:done]))
        for group in _groups(texts(files, rules, self.place)):
            known = [text for _, text in group if isinstance(text, str)]
            encodings = iter(self.tokenizer.encode_many(known))
            for place, text in group:
                self.place = place
                if isinstance(text, DocumentError):
                    self.failed.append(str(text))
                else:
                    encoding = next(encodings)
                    self._add(text, encoding.ids[encoding.source >= 0])
            bar.update(sum(_size(path) for path in files[done : self.place.file]))
            done = max(done, self.place.file)

    def _add(self, text: str, ids: IntArray) -> None:
        if not ids.size:
            return
        self.tokens.append(ids)
        self.hashes.append(text_hash(text))
        self.size += ids.size
        self.characters += len(text)
        if self.size >= self.plan["part_tokens"]:
            self._write()

    def _write(self) -> None:
        name = part_name(len(self.names))
        notes = {"place": self.place, "characters": self.characters, "failed": self.failed}
        write_part(self.home / name, self.tokens, self.hashes, self.plan["dtype"], notes)
        self.names.append(name)
        self.tokens, self.hashes, self.size = [], [], 0

    def finish(self) -> None:
        """Write the last part, and the manifest."""
        if self.size:
            self._write()
        if not self.names:
            reasons = " ".join(self.failed[:3]) or "They hold no text."
            raise bad("data", "files with text", f"{self.plan['files']} without any", reasons)
        kept = {name: self.plan[name] for name in ("version", "dtype", "tokenizer", "vocab_size")}
        found = {"parts": self.names, "characters": self.characters, "failed": self.failed}
        write_text(self.home / MANIFEST, as_json(kept | found))


def _groups(found: Iterator[tuple[Place, str | DocumentError]]) -> Iterator[list[tuple[Place, Any]]]:
    """Texts that are tokenized together."""
    group: list[tuple[Place, str | DocumentError]] = []
    size = 0
    for one in found:
        group.append(one)
        size += len(one[1]) if isinstance(one[1], str) else 0
        if size >= TOGETHER:
            yield group
            group, size = [], 0
    yield group


def _is_same(home: Path, plan: dict[str, Any], force: bool) -> bool:
    """Whether the folder holds what a run with this plan has begun; an error if it holds another."""
    wanted = json.loads(as_json(plan))
    stored = read_json(home / PLAN) if (home / PLAN).is_file() else None
    if stored is None:
        if strange := [path.name for path in home.iterdir() if not _OURS.fullmatch(path.name)]:
            raise bad("out", "a new or empty folder, or that of a corpus", str(home), f"It has {strange[0]}.")
        return False
    if stored == wanted:
        return True
    if force:
        return False
    names = ("tokenizer", "data", "rules", "part_tokens")
    other = [name for name in names if stored.get(name) != wanted[name]]
    repair = "Give another folder, or --force to replace it."
    raise bad("out", f"a corpus of the same {' and '.join(other) or 'version'}", str(home), repair)


def _clear(home: Path, plan: dict[str, Any], tokenizer: Tokenizer) -> None:
    """Begin anew: the manifest goes first, the plan comes last."""
    for path in (home / MANIFEST, home / PLAN, *home.glob("part-*.safetensors")):
        path.unlink(missing_ok=True)
    tokenizer.save(home / TOKENIZER)
    write_text(home / PLAN, as_json(plan))


def _digest(files: Sequence[Path]) -> str:
    """What the data are: names, sizes and times of the files."""
    digest = hashlib.sha256()
    for path in files:
        state = path.stat()
        digest.update(f"{path}\0{state.st_size}\0{state.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
