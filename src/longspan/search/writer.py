"""Writing an index: which files are new or changed, their words first, then what the model reads."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from longspan.errors import DocumentError, LongspanError
from longspan.progress import progress_bar
from longspan.search.records import RECOGNIZED, Entry, File, Row
from longspan.search.store import Store
from longspan.search.update import Report, digest, is_gone, within
from longspan.text.documents import Document, Limits, read_each
from longspan.text.files import kinds
from longspan.text.passages import tile
from longspan.text.walk import walk

if TYPE_CHECKING:
    from longspan.reader import Reader

T = TypeVar("T", Entry, "_Cut | DocumentError")
WORDS_GROUP = 12_000_000
"""Characters whose words are committed together."""
GROUP = 1 << 17
"""Characters that the model reads before they are committed; a kill loses no more."""


@dataclass(frozen=True)
class Writer:
    """Brings a store up to date, and reports what it does; its caller holds the lock."""

    store: Store
    report: Report
    progress: bool | None

    def add_words(self, roots: Sequence[Path], *, ocr: bool, limits: Limits) -> None:
        """Make the words of all files known; records of deleted, renamed and touched ones are updated."""
        pending = list(self._compare(roots, ocr).items())
        size, done = sum(files[0].size for _, files in pending), 0
        paths = [files[0].path for _, files in pending]
        # Two child processes parse at once, but two threads would only wait for each other.
        workers = 1 + any(kinds.SUFFIXES.get(path.suffix.lower()) in kinds.PARSED for path in paths)
        reading = read_each(paths, _cut, limits=limits, ocr=ocr, workers=workers, ahead=WORDS_GROUP)
        # Closing stops the threads that read ahead.
        with progress_bar(size, "bytes", shown=self.progress, scale=True) as bar, closing(reading):
            for group in _grouped(reading, WORDS_GROUP):
                known, done = pending[done : done + len(group)], done + len(group)
                self._commit(list(zip(known, group, strict=True)), ocr)
                bar.update(sum(files[0].size for _, files in known))

    def _compare(self, roots: Sequence[Path], ocr: bool) -> dict[bytes, list[File]]:
        """The files that must be read, by their digests; records of other changes are updated."""
        report = self.report
        known = {file.path: file for file in self.store.files()}
        held = {entry.id: entry for entry in self.store.entries()}
        number_of = {entry.digest: number for number, entry in held.items()}
        unrecognized = {number: e.digest for number, e in held.items() if ocr and e.unrecognized}
        present = dict.fromkeys(
            walk(
                roots,
                pictures=ocr,
                skipped=lambda path, reason: report.skipped.append((path, reason)),
                failed=lambda path, reason: report.failed.append((path, reason)),
            )
        )
        gone = {path for path in known if path not in present and within(path, roots) and is_gone(path)}
        lost = {known[path].document for path in gone}
        pending: dict[bytes, list[File]] = {}
        same = []
        for path in present:
            old = known.get(path)
            try:
                stat = path.stat()
                same_file = old and (old.size, old.mtime) == (stat.st_size, stat.st_mtime_ns)
                if old and same_file and old.document not in unrecognized:
                    report.unchanged += 1
                    continue
                content = unrecognized[old.document] if old and same_file else digest(path)
            except OSError as error:
                report.failed.append((path, error.strerror or str(error)))
                continue
            number = number_of.get(content + RECOGNIZED) or number_of.get(content, 0)
            file = File(path, stat.st_size, stat.st_mtime_ns, number)
            if not number or number in unrecognized:
                pending.setdefault(content, []).append(file)
                continue
            same.append(file)
            if old and old.document == file.document:
                report.unchanged += 1
            elif old:
                report.changed += 1
            elif file.document in lost:
                report.moved += 1
                lost.discard(file.document)
            else:
                report.added += 1
        report.removed = max(0, len(gone) - report.moved)
        if gone or same:
            with self.store.db.transaction():
                self.store.remove(sorted(gone))
                self.store.put_files(same)
                self.store.remove_orphans()
        return pending

    def _commit(
        self, group: Sequence[tuple[tuple[bytes, list[File]], "_Cut | DocumentError"]], ocr: bool
    ) -> None:
        """Commit the texts of some files; those that could not be read are reported."""
        report = self.report
        known = {file.path for file in self.store.files()}
        fresh = []
        for (content, files), cut in group:
            if isinstance(cut, DocumentError):
                report.failed += [(file.path, str(cut)) for file in files]
                continue
            document, rows = cut
            report.gaps += [(file.path, document.gap) for file in files if document.gap]
            report.changed += sum(file.path in known for file in files)
            report.added += sum(file.path not in known for file in files)
            mark = RECOGNIZED if ocr and document.kind in kinds.RECOGNIZED else b""
            fresh.append((files, (_entry(document, content + mark), rows)))
        if fresh:
            with self.store.db.transaction():
                ids = self.store.add([cut for _, cut in fresh])
                self.store.put_files(
                    [file._replace(document=ids[cut[0].digest]) for files, cut in fresh for file in files]
                )
                self.store.remove_orphans()

    def embed(self, reader: "Callable[[], Reader]", tokens: str, roots: Sequence[Path] | None = None) -> None:
        """Let the model read what it has not read yet, or only what lies in some files and folders."""
        report = self.report
        pending = self.store.pending()
        if roots is not None:
            near = {file.document for file in self.store.files() if within(file.path, roots)}
            pending = [entry for entry in pending if entry.id in near]
        total, done = sum(entry.characters for entry in pending), 0
        with progress_bar(total // 4, "tokens", shown=self.progress, scale=True) as bar:  # 4: a first guess
            for group in _grouped(pending, GROUP):
                from longspan.search.passages import encode

                texts = [[row.text for row in self.store.passages(entry)] for entry in group]
                model, mark = reader(), self.store.db.get("fingerprint")
                encodings = encode(model, texts, tokens, advance=bar.update)
                readings = [encoding.reading._asdict() for encoding in encodings]
                records = [
                    (replace(entry, **reading), encoding.tables)
                    for entry, reading, encoding in zip(group, readings, encodings, strict=True)
                ]
                with self.store.db.transaction():
                    if self.store.db.get("fingerprint") != mark:
                        raise LongspanError(f"The index `{self.store.folder}` was rebuilt. Run this again.")
                    self.store.put_vectors(records)
                    self.store.db.put(token_kind=tokens)
                report.n_tokens += sum(entry.n_tokens or 0 for entry, _ in records)
                report.truncated += sum(entry.truncated for entry, _ in records)
                report.read += len(group)
                done += sum(entry.characters for entry in group)
                bar.expect(round(report.n_tokens * max(1.0, total / max(done, 1))))


class _Cut(NamedTuple):
    """A document and its passages, which together are its text."""

    document: Document
    rows: list[Row]

    @property
    def characters(self) -> int:
        return len(self.document.text)


def _cut(document: Document) -> _Cut:
    text = document.text
    heads = [heading.start for heading in document.headings]
    rows: list[Row] = []
    line, above, section = 1, 0, ""
    for start, end in pairwise((*tile(text, heads), len(text))):
        if above != (above := bisect_right(heads, start)):
            section = "\n".join(document.section_of(start))
        rows.append(Row(start, line, section, text[start:end]))
        line += text.count("\n", start, end)
    return _Cut(document, rows)


def _entry(document: Document, content: bytes) -> Entry:
    """What the index keeps of a document beside its passages."""
    return Entry(
        digest=content,
        kind=document.kind,
        title=document.title or "",
        characters=len(document.text),
        pages=np.array(document.pages, "<u4").tobytes(),
    )


def _grouped(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Documents in groups of about `size` characters."""
    group: list[T] = []
    total = 0
    for item in items:
        group.append(item)
        total += 0 if isinstance(item, DocumentError) else item.characters
        if total >= size:
            yield group
            group, total = [], 0
    if group:
        yield group
