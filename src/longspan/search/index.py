"""Index: files in, the passages that answer a query out; only what is new or changed is ever encoded."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from longspan.errors import LongspanError, bad
from longspan.search.rank import asked, fused
from longspan.search.results import Hits
from longspan.search.store import File, Row, Store
from longspan.search.update import Report, bar, digest, fingerprint, is_gone, listed, stamp_of, within
from longspan.search.view import View
from longspan.shapes import FloatArray
from longspan.text.documents import Document, read
from longspan.text.walk import walk

if TYPE_CHECKING:
    from longspan.reader import Reader

GROUP = 1 << 17
"""Characters that are encoded and committed together: what a kill may cost."""
DEPTH = 100
"""How many passages each half of a hybrid search offers."""


class Index:
    """Documents that can be searched by meaning and by words.

    `index = Index.open("my-index")`, `index.add(["docs/"])`, `print(index.search("who pays?"))`.
    """

    def __init__(self, store: Store, model: "str | Path | Reader | None") -> None:
        self._store, self._model = store, model
        self._last: tuple[tuple[int, int], View] | None = None

    @classmethod
    def open(cls, folder: str | Path, model: "str | Path | Reader | None" = None) -> Self:
        """The index in a folder, made if it does not exist.

        `model` is a Reader, a folder or a name on the hub; None is the model that the index was made with,
        for a new one the built-in model.
        """
        return cls(Store(Path(folder).expanduser()), model)

    @property
    def folder(self) -> Path:
        """Where the index lies."""
        return self._store.folder

    @property
    def model(self) -> str | None:
        """What the index was made with."""
        return self._store.db.get("model")

    @cached_property
    def reader(self) -> "Reader":
        """The model, loaded when it is first needed; it must be the one that the index was made with."""
        given, stamp = self._model, None
        if given is None or isinstance(given, str | Path):
            from longspan.checkpoints.default import folder_of
            from longspan.reader import load

            name = str(given or self.model or "default")
            folder = folder_of(name)
            stamp = stamp_of(Path(folder))
            reader = load(folder, task="encode", overflow="window")
        else:
            reader, name = given, "a Reader"
        if stamp is None or stamp != self._store.db.get("stamp"):
            self._recognise(reader, name, stamp)
        return reader

    def _recognise(self, reader: "Reader", name: str, stamp: str | None) -> None:
        """Compare a model with the one that the index was made with, and note what both are known by."""
        mark, known = fingerprint(reader), self._store.db.get("fingerprint")
        if known not in (None, mark):
            made = f"the one that the index was made with ({self.model})"
            what = f"{name}, which has changed since" if name == self.model else name
            raise bad("model", made, what, "Rebuild the index with --rebuild, or use another folder.")
        notes = {"fingerprint": mark, "model": self.model or name} | ({"stamp": stamp} if stamp else {})
        # An index that is made already is of use where it cannot be written.
        with suppress(LongspanError) if known else nullcontext(), self._store.db.transaction():
            self._store.db.put(**notes)

    def add(self, paths: str | Path | Iterable[str | Path], *, progress: bool | None = None) -> Report:
        """Bring the index up to date with files and folders; whatever is gone from them is removed.

        A file of the same size and time, or else of the same content, is not read again, nor is one that was
        renamed. Every group of files is committed when it is encoded, so an interrupted run loses little.
        """
        began, report = time.perf_counter(), Report()
        roots = listed(paths)
        wanted = self._compare(roots, report)
        total = sum(file.size for file in wanted)
        with bar(total, progress) as shown:
            done = 0
            for group in self._groups(wanted, report):
                self._encode(group, report, shown.update)
                done += sum(file.size for file, _ in group)
                shown.total = round(report.n_tokens * max(1.0, total / max(done, 1)))
        if report.removed or report.encoded:
            self._store.compact()
        report.seconds = time.perf_counter() - began
        return report

    def _compare(self, roots: Sequence[Path], report: Report) -> list[File]:
        """The files that must be encoded; those that are gone, renamed or only touched are dealt with."""
        known = {file.path: file for file in self._store.files()}
        skip, fail = ((lambda *told, to=to: to.append(told)) for to in (report.skipped, report.failed))
        found = dict.fromkeys(walk(roots, skipped=skip, failed=fail))
        gone = {path for path in known if path not in found and within(path, roots) and is_gone(path)}
        lost = {known[path].digest: path for path in gone}
        wanted, renamed = [], []
        for path in found:
            old = known.get(path)
            try:
                stat = path.stat()
                if old and (old.size, old.mtime) == (stat.st_size, stat.st_mtime_ns):
                    report.unchanged += 1
                    continue
                content = digest(path)
            except OSError as error:
                report.failed.append((path, error.strerror or str(error)))
                continue
            file = File(path=path, size=stat.st_size, mtime=stat.st_mtime_ns, digest=content)
            if old and old.digest == content:
                report.unchanged += 1
                renamed.append((path, file))
            elif old is None and content in lost:
                report.moved += 1
                renamed.append((lost.pop(content), file))
            else:
                wanted.append(replace(file, id=old.id if old else 0))
        gone -= {path for path, _ in renamed}
        report.removed = len(gone)
        if gone or renamed:
            with self._store.db.transaction():
                self._store.remove(sorted(gone))
                for path, file in renamed:
                    self._store.move(path, file)
        return wanted

    def _groups(self, wanted: Sequence[File], report: Report) -> Iterator[list[tuple[File, Document]]]:
        """Files with their texts, as many at once as are worth a commit."""
        group: list[tuple[File, Document]] = []
        size = 0
        for file in wanted:
            try:
                document = read(file.path)
            except (LongspanError, OSError) as error:
                report.failed.append((file.path, getattr(error, "strerror", None) or str(error)))
                continue
            group.append((file, document))
            size += len(document.text)
            if size >= GROUP:
                yield group
                group, size = [], 0
        if group:
            yield group

    def _encode(self, group: Sequence[tuple[File, Document]], report: Report, advance: Any) -> None:
        from longspan.search.passages import encode

        texts = [document.text for _, document in group]
        encoded = encode(self.reader, texts, advance=advance)
        added = [
            (
                replace(file, **one.reading._asdict()),
                one.table,
                [_row(document, span.start, span.end) for span in one.passages],
            )
            for (file, document), one in zip(group, encoded, strict=True)
        ]
        with self._store.db.transaction():
            self._store.add(added)
        for (file, _), one in zip(group, encoded, strict=True):
            report.changed += file.id > 0
            report.added += file.id == 0
            report.n_tokens += one.reading.n_tokens
            report.truncated += one.reading.truncated

    def search(
        self,
        query: str,
        top: int = 10,
        *,
        mode: str = "hybrid",
        by: str = "passage",
        inside: str | Path | Iterable[str | Path] | None = None,
    ) -> Hits:
        """The `top` passages that answer `query` best, only from the files or folders `inside` if given.

        mode is "dense" (meaning), "bm25" (words) or "hybrid" (both). For meaning, every passage is compared
        with the query, and of the nearest the parts, too. by="document" gives of each document the passage
        that answers best, and ranks documents as wholes: half by themselves, half by that passage.
        """
        asked(query, top, mode, by)
        roots = None if inside is None else listed(inside)
        if not len(self):
            return Hits(query, [])
        vector = None if mode == "bm25" else self._vector(query)
        with self._store.db.snapshot(), self._store.db.sound():
            view, depth = self._view(), max(DEPTH, top) if mode == "hybrid" else top
            rows = view.rows(roots)
            dense, words = view.both(query, vector, depth, rows, mode=mode, by=by)
            scores = fused(dense, words) if mode == "hybrid" else dense or words
            found = [view.hit(n, scores[n], dense.get(n), words.get(n)) for n in list(scores)[:top]]
        return Hits(query, found)

    def _vector(self, query: str) -> FloatArray:
        vector: FloatArray = self.reader.encode_query(
            query, normalize=True, progress=False, overflow="window"
        )
        return vector.astype(np.float32)

    def _view(self) -> View:
        """The index as it is now, also after another process has written."""
        version = self._store.db.version
        if self._last is None or version != self._last[0]:
            with self._store.db.sound():
                self._last = version, View(self._store)
        return self._last[1]

    @property
    def files(self) -> list[Path]:
        """What the index holds."""
        return sorted(file.path for file in self._view().files)

    def __len__(self) -> int:
        return len(self._view())

    def __bool__(self) -> bool:
        return True

    def verify(self) -> None:
        """Read everything and compare it with its checksums; damage is an error."""
        with self._store.db.sound():
            self._store.verify()

    def close(self) -> None:
        """Let go of the files."""
        self._store.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, {len(self.files)} files, {len(self)} passages, {self.model})"


def _row(document: Document, start: int, end: int) -> Row:
    return Row(start, end, document.page_of(start), document.line_of(start), document.text[start:end])
