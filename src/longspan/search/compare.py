"""Comparing files with what an index knows of them: which must be read, which it holds, which are gone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from longspan.errors import unreadable
from longspan.search.records import RECOGNIZED, File
from longspan.search.store import Store
from longspan.search.update import Report, digest, is_gone, is_same, too_many, within
from longspan.text.documents import Limits, check_size
from longspan.text.files.parsed import Refusal
from longspan.text.walk import walk


@dataclass(frozen=True)
class Comparison:
    """Files beside what an index knows of them; the report counts what is found."""

    known: dict[Path, File]
    numbers: dict[bytes, int]
    "The documents of the index by their digests."
    unrecognized: dict[int, bytes]
    "Documents to read again, since their pictures were not, with their digests."
    limits: Limits
    report: Report
    gone: set[Path]
    "Files to forget: they are gone, or hold something else that cannot be read."
    lost: set[int]
    "Documents of files that are gone: found elsewhere, they have moved."
    pending: dict[bytes, list[File]] = field(default_factory=dict)
    "Files to read, by their digests."
    same: list[File] = field(default_factory=list)
    "Files, new or touched, whose document the index holds."

    def add(self, paths: Iterable[Path]) -> None:
        """Compare files that are there."""
        for path in paths:
            old = self.known.get(path)
            try:
                found = self._file(path, old)
            except (OSError, Refusal) as error:
                self.report.failed.append((path, _reason(path, error)))
                if old and not is_same(path, old.size, old.mtime):
                    self.gone.add(path)  # what the index holds of it is not what it says now
                continue
            if found is None:
                self.report.unchanged += 1
                continue
            content, file = found
            if not file.document or file.document in self.unrecognized:
                self.pending.setdefault(content, []).append(file)
            else:
                self.same.append(file)
                self._count(file, old)

    def _file(self, path: Path, old: File | None) -> tuple[bytes, File] | None:
        """The digest and the record of a file; None if it need not be looked into."""
        stat = path.stat()
        untouched = old is not None and (old.size, old.mtime) == (stat.st_size, stat.st_mtime_ns)
        if old and untouched and old.document not in self.unrecognized:
            return None
        check_size(stat.st_size, self.limits)  # before it is read for its digest
        content = self.unrecognized[old.document] if old and untouched else digest(path)
        number = self.numbers.get(content + RECOGNIZED) or self.numbers.get(content, 0)
        return content, File(path, stat.st_size, stat.st_mtime_ns, number)

    def _count(self, file: File, old: File | None) -> None:
        """Report what became of a file whose document the index holds."""
        if old and old.document == file.document:
            self.report.unchanged += 1
        elif old:
            self.report.changed += 1
        elif file.document in self.lost:
            self.report.moved += 1
            self.lost.discard(file.document)
        else:
            self.report.added += 1

    def keep(self, roots: Sequence[Path], forget: bool | None) -> None:
        """Report files that are gone, but are not to be forgotten: all, or those that are too many."""
        if forget:
            return
        found = {file.document for file in self.same}
        lost = {path for path in self.gone if self.known[path].document not in found and is_gone(path)}
        kept = lost if forget is False else too_many(lost, self.known, roots)
        self.report.missing = sorted(kept)
        self.gone.difference_update(kept)


def compare(
    store: Store, report: Report, roots: Sequence[Path], *, ocr: bool, forget: bool | None, limits: Limits
) -> Comparison:
    """Compare the files below some roots with an index."""
    known = {file.path: file for file in store.files()}
    held = {entry.id: entry for entry in store.entries()}
    present = dict.fromkeys(
        walk(
            roots,
            pictures=ocr,
            skipped=lambda path, reason: report.skipped.append((path, reason)),
            failed=lambda path, reason: report.failed.append((path, reason)),
        )
    )
    report.skipped = [each for each in dict.fromkeys(report.skipped) if each[0] not in present]
    gone = {
        path
        for path, file in known.items()
        if path not in present and within(path, roots) and not is_same(path, file.size, file.mtime)
    }
    comparison = Comparison(
        known=known,
        numbers={entry.digest: number for number, entry in held.items()},
        unrecognized={number: e.digest for number, e in held.items() if ocr and e.unrecognized},
        limits=limits,
        report=report,
        gone=gone,
        lost={known[path].document for path in gone},
    )
    comparison.add(present)
    comparison.keep(roots, forget)
    return comparison


def _reason(path: Path, error: OSError | Refusal) -> str:
    """Why a file cannot be read."""
    if isinstance(error, Refusal):
        return str(unreadable(path, error.reason, error.repair))
    return error.strerror or str(error)
