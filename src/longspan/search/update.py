"""Updating an index: which files changed, whether the model is the same, and the report of what was done."""

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, TypedDict, cast

from longspan.text.files.regular import chunks

if TYPE_CHECKING:
    from longspan.reader import Reader


class FileReason(TypedDict):
    """A file that was not read, and why."""

    file: str
    reason: str


class ReportDict(TypedDict):
    """A Report as JSON has it."""

    added: int
    changed: int
    moved: int
    removed: int
    unchanged: int
    failed: list[FileReason]
    skipped: list[FileReason]
    gaps: list[FileReason]
    missing: list[str]
    read: int
    n_tokens: int
    truncated: int
    seconds: float


@dataclass
class Report:
    """What an update of an index did."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: list[tuple[Path, str]] = field(default_factory=list)
    "Files that could not be read, and why; the index keeps what it held of those that have not changed."
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    "Files in folders that are not documents, such as pictures, and why."
    gaps: list[tuple[Path, str]] = field(default_factory=list)
    "Files of which something is missing, and what: text on pages, hidden text, characters."
    missing: list[Path] = field(default_factory=list)
    "Files that are gone, but that the index keeps, since there are so many of them."
    read: int = 0
    "How many documents the model has read."
    n_tokens: int = 0
    truncated: int = 0
    seconds: float = 0.0

    def as_dict(self) -> ReportDict:
        """Plain data for JSON."""
        lists = {
            name: [{"file": str(path), "reason": reason} for path, reason in getattr(self, name)]
            for name in ("failed", "skipped", "gaps")
        }
        return cast(ReportDict, vars(self) | lists | {"missing": list(map(str, self.missing))})

    @property
    def skips(self) -> str:
        """How many files were skipped, and for which reasons."""
        return f"{len(self.skipped)} skipped ({_reasons(self.skipped)})"

    def __str__(self) -> str:
        counts = {name: getattr(self, name) for name in ("added", "changed", "moved", "removed", "unchanged")}
        counts["missing, but kept"] = len(self.missing)
        parts = [f"{count} {name}" for name, count in counts.items() if count]
        parts += [self.skips] if self.skipped else []
        parts = parts or ["nothing to do"]
        speed = (
            f", {self.n_tokens:,} tokens at {self.n_tokens / self.seconds:,.0f}/s" if self.n_tokens else ""
        )
        return f"{', '.join(parts)}{speed}"


KINDS = (
    (r"its suffix (\S+) is not known", "with unknown suffix"),
    (r"it is a picture.*", "as pictures, see --ocr"),
    (r"it looks binary", "binary"),
    (r"it is a link to a folder", "as links to folders"),
    (r"it was found before.*", "as known under another path"),
    (r"it is not a regular file.*", "as pipes, devices or broken links"),
    (r"it says that it is empty.*", "as files of the system"),
)
"""Reasons to skip a file, and what they are called in a summary."""


def _reasons(skipped: Sequence[tuple[Path, str]]) -> str:
    """How many files were skipped for which reason.

    >>> _reasons([(Path("a.bin"), "its suffix .bin is not known"), (Path("b"), "it looks binary")])
    '1 with unknown suffix: .bin; 1 binary'
    """
    kinds: dict[str, list[str]] = {}
    for _, reason in skipped:
        kind, detail = reason, ""
        for pattern, short in KINDS:
            if match := re.fullmatch(pattern, reason):
                kind, detail = short, "".join(match.groups())
        kinds.setdefault(kind, []).append(detail)
    parts = []
    for kind, details in sorted(kinds.items(), key=lambda item: -len(item[1])):
        named = ", ".join(sorted({detail for detail in details if detail})[:5])
        parts.append(f"{len(details)} {kind}{f': {named}' if named else ''}")
    return "; ".join(parts)


KEY_NAMES = (("backbone.", "body."), ("head.sif.", "head.salience."))
"""Parts of a model, and what indexes on disk know them by."""


def fingerprint(reader: "Reader") -> str:
    """The same for the same weights, config, tokenizer and pooling, wherever they came from.

    An adapter is part of the weights; so are prefixes and a skip list of tokens, where a model has such.
    """
    import torch

    from longspan.families.registry import stated_fields
    from longspan.search.passages import way_of

    stated = stated_fields(reader.model.config)
    mark = hashlib.blake2b(f"{stated}{reader.prompts}{way_of(reader).settings}".encode(), digest_size=16)
    mark.update(reader.tokenizer.to_json().encode())
    for name, tensor in sorted(reader.model.state_dict().items()):
        for ours, stored in KEY_NAMES:
            name = stored + name.removeprefix(ours) if name.startswith(ours) else name
        mark.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        mark.update(flat.view(dtype=torch.uint8).numpy().data)
    return mark.hexdigest()


def stamp_of(folder: Path, adapter: str | None = None) -> str | None:
    """A digest of the names, sizes and times of a model's files: while it holds, so does the fingerprint."""
    if not folder.is_dir():
        return None
    files = sorted((str(path), path.stat()) for path in folder.resolve().rglob("*") if path.is_file())
    known = [(name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in files]
    said = f"{known}{adapter or ''}"
    return hashlib.blake2b(said.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def digest(path: Path) -> bytes:
    """A digest of a file's content; an OSError or a Refusal if it cannot be read without waiting."""
    mark = hashlib.blake2b(digest_size=16)
    for chunk in chunks(path):
        mark.update(chunk)
    return mark.digest()


def is_gone(path: Path) -> bool:
    """Whether there is no such file; a file in a folder that may not be listed is not gone."""
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False


def too_many(gone: set[Path], known: Iterable[Path], roots: Sequence[Path]) -> set[Path]:
    """Those of the files that are gone which are more than half of what is known in one of the folders."""
    found: set[Path] = set()
    paths = list(known)
    for root in roots:
        own = {path for path in paths if within(path, [root])}
        lost = gone & own
        if 2 * len(lost) > len(own):
            found |= lost
    return found


def is_same(path: Path, size: int, mtime: int) -> bool:
    """Whether a file has not changed since it had this size and time; one that cannot be asked has not."""
    try:
        status = path.stat()
    except OSError:
        return not is_gone(path)
    return S_ISREG(status.st_mode) and (status.st_size, status.st_mtime_ns) == (size, mtime)


def listed(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """One or several paths as a list of absolute ones, without `..`; links stay what they are."""
    several = [paths] if isinstance(paths, str | Path) else paths
    return [Path(os.path.abspath(Path(path).expanduser())) for path in several]


def within(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a path is one of some files, or lies in one of some folders."""
    return any(path == root or root in path.parents for root in roots)
