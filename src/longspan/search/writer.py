"""Writing an index: which files are new or changed, their words first, then what the model reads."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from longspan.errors import DocumentError
from longspan.progress import Estimate, progress_bar
from longspan.search.compare import compare
from longspan.search.large import SEGMENT, Growing, characters_read
from longspan.search.reading import Reading
from longspan.search.records import RECOGNIZED, Entry, File, Row, packed
from longspan.search.store import Store
from longspan.search.update import Report, within
from longspan.text.documents import DEFAULT, Document, Limits, read_each
from longspan.text.files import kinds
from longspan.text.parts import LARGE, Part, is_large, parts_of, read_parts
from longspan.text.passages import tile

if TYPE_CHECKING:
    from longspan.reader import Reader

T = TypeVar("T", Entry, "_Cut | DocumentError")
WORDS_GROUP = 12_000_000
"""Characters whose words are committed together."""
GROUP = 1 << 17
"""Characters of documents that are read and committed together."""


@dataclass(frozen=True)
class Writer:
    """Brings a store up to date, and reports what it does; its caller holds the lock."""

    store: Store
    report: Report
    progress: bool | None

    def add_words(
        self, roots: Sequence[Path], *, ocr: bool, forget: bool | None = None, limits: Limits = DEFAULT
    ) -> None:
        """Make the words of all files known; records of deleted, renamed and touched ones are updated.

        `forget` says whether deleted files are forgotten; None: unless they are too many.
        """
        pending = list(self._compare(roots, ocr, forget, limits).items())
        size, done = sum(files[0].size for _, files in pending), 0
        large = [item for item in pending if is_large(item[1][0].path)]
        small = [item for item in pending if item not in large]
        paths = [files[0].path for _, files in small]
        # Two child processes parse at once, but two threads would only wait for each other.
        workers = 1 + any(kinds.SUFFIXES.get(path.suffix.lower()) in kinds.PARSED for path in paths)
        reading = read_each(paths, _cut, limits=limits, ocr=ocr, workers=workers, ahead=WORDS_GROUP)
        # Closing stops the threads that read ahead.
        with progress_bar(size, "bytes", shown=self.progress, scale=True) as bar, closing(reading):
            for group in _grouped(reading, WORDS_GROUP):
                known, done = small[done : done + len(group)], done + len(group)
                self._commit(list(zip(known, group, strict=True)), ocr)
                bar.update(sum(files[0].size for _, files in known))
            for content, files in large:  # last, so that all others are done whatever happens
                self._add_large(content, files, read_parts(files[0].path, limits=limits), bar.update)

    def _add_large(
        self,
        content: bytes,
        files: Sequence[File],
        parts: Iterator[Part],
        advance: Callable[[int], object],
        whole: Document | None = None,
    ) -> None:
        """Commit a large document part by part; one that cannot be read to its end is reported."""
        report, growing, before, section, replaced = self.report, None, 0, "", 0
        known = {file.path for file in self.store.files()}
        try:
            for part in parts:
                document, end = part.document, part.start + len(part.document.text)
                if growing is None:
                    entry = replace(_entry(whole or document, content), characters=0)
                    growing = Growing.begin(self.store, files, entry)
                if end > growing.entry.characters:
                    growing.add(_rows(document, part, section), end)
                if document.headings:
                    section = "\n".join(document.section_of(len(document.text)))
                advance(part.done - before)
                before, replaced = part.done, replaced + document.replaced
        except (DocumentError, MemoryError, ValueError) as error:
            reason = str(error) if isinstance(error, DocumentError) else f"it cannot be processed ({error!r})"
            report.failed += [(file.path, reason) for file in files]
            return
        if growing is not None:
            growing.finish()
            if replaced:
                report.gaps += [(file.path, Document("", replaced=replaced).gap) for file in files]
            report.changed += sum(file.path in known for file in files)
            report.added += sum(file.path not in known for file in files)

    def _compare(
        self, roots: Sequence[Path], ocr: bool, forget: bool | None, limits: Limits
    ) -> dict[bytes, list[File]]:
        """The files that must be read, by their digests; records of other changes are updated."""
        found = compare(self.store, self.report, roots, ocr=ocr, forget=forget, limits=limits)
        self.report.removed = max(0, len(found.gone) - self.report.moved)
        if found.gone or found.same:
            with self.store.db.transaction():
                self.store.remove(sorted(found.gone))
                self.store.put_files(found.same)
                self.store.remove_orphans()
        return found.pending

    def _commit(
        self, group: Sequence[tuple[tuple[bytes, list[File]], "_Cut | DocumentError"]], ocr: bool
    ) -> None:
        """Commit the texts of some files; those that could not be read are reported."""
        report = self.report
        known = {file.path for file in self.store.files()}
        fresh, large, stale = [], [], list[Path]()
        for (content, files), cut in group:
            if isinstance(cut, DocumentError):
                report.failed += [(file.path, str(cut)) for file in files]
                stale += [file.path for file in files if file.path in known and not file.document]
                continue
            document, rows = cut
            report.gaps += [(file.path, document.gap) for file in files if document.gap]
            mark = RECOGNIZED if ocr and document.kind in kinds.RECOGNIZED else b""
            if rows is None:
                large.append((content + mark, files, document))
                continue
            report.changed += sum(file.path in known for file in files)
            report.added += sum(file.path not in known for file in files)
            fresh.append((files, (_entry(document, content + mark), rows)))
        report.removed += len(stale)
        if fresh or stale:
            with self.store.db.transaction():
                self.store.remove(stale)
                ids = self.store.add([cut for _, cut in fresh])
                self.store.put_files(
                    [file._replace(document=ids[cut[0].digest]) for files, cut in fresh for file in files]
                )
                self.store.remove_orphans()
        for content, files, document in large:
            self._add_large(content, files, parts_of(document), lambda count: None, document)

    def embed(self, reader: "Callable[[], Reader]", tokens: str, roots: Sequence[Path] | None = None) -> None:
        """Let the model read what it has not read yet, or only what lies in some files and folders."""
        pending, names = self.store.pending(), {file.document: file.path for file in self.store.files()}
        if roots is not None:
            near = {file.document for file in self.store.files() if within(file.path, roots)}
            pending = [entry for entry in pending if entry.id in near]
        total = sum(entry.characters - characters_read(self.store, entry) for entry in pending)
        with progress_bar(total // 4, "tokens", shown=self.progress, scale=True) as bar:  # 4: a first guess
            reading = Reading(self.store, self.report, reader, tokens, names, bar, Estimate(bar, total))
            for group in _grouped(pending, GROUP):
                reading.read(group)


class _Cut(NamedTuple):
    """A document and its passages, which together are its text."""

    document: Document
    rows: list[Row] | None
    "None: it is large, and its parts are cut one after the other."

    @property
    def characters(self) -> int:
        return len(self.document.text)


def _cut(document: Document) -> _Cut:
    large = len(document.text) > LARGE
    return _Cut(document, None if large else _rows(document))


def _rows(document: Document, part: Part | None = None, above: str = "") -> list[Row]:
    """The passages of a document, or of a part of one that begins below the heading `above`."""
    text, heads = document.text, [heading.start for heading in document.headings]
    first, line = (part.start, part.line) if part else (0, 1)
    rows: list[Row] = []
    passed, section = 0, above
    for start, end in pairwise((*tile(text, heads), len(text))):
        if passed != (passed := bisect_right(heads, start)):
            section = "\n".join(document.section_of(start))
        rows.append(Row(first + start, line, section, text[start:end]))
        line += text.count("\n", start, end)
    return rows


def _entry(document: Document, content: bytes) -> Entry:
    """What the index keeps of a document beside its passages."""
    return Entry(
        digest=content,
        kind=document.kind,
        title=document.title or "",
        characters=len(document.text),
        pages=np.array(document.pages, "<u4").tobytes(),
        places=packed(document.places),
    )


def _grouped(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Documents in groups of about `size` characters; those of several segments go alone."""
    group: list[T] = []
    total = 0
    for item in items:
        own = 0 if isinstance(item, DocumentError) else item.characters
        if group and own > max(size, SEGMENT):
            yield group
            group, total = [], 0
        group.append(item)
        total += own
        if total >= size:
            yield group
            group, total = [], 0
    if group:
        yield group
