"""Index: files in, the passages that answer a query out; only new and changed files are encoded."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import numpy as np

from longspan.errors import LongspanError, bad
from longspan.progress import progress_bar
from longspan.search.rank import check_options, fuse
from longspan.search.results import Hits
from longspan.search.store import File, Row, Store
from longspan.search.update import Report, digest, fingerprint, is_gone, listed, stamp_of, within
from longspan.search.view import View
from longspan.shapes import FloatArray
from longspan.text.documents import Document, read
from longspan.text.walk import walk

if TYPE_CHECKING:
    from longspan.reader import Reader

GROUP = 1 << 17
"""Characters that are encoded and committed together; a kill loses no more."""
DEPTH = 100
"""How many passages each ranking contributes to a hybrid search."""


class Index:
    """Documents that can be searched by meaning and by words.

    `index = Index.open("my-index")`, `index.add(["docs/"])`, `print(index.search("who pays?"))`.
    """

    def __init__(self, store: Store, model: "str | Path | Reader | None") -> None:
        self._store, self._model = store, model
        self._last: tuple[tuple[int, int], View] | None = None

    @classmethod
    def open(cls, folder: str | Path, model: "str | Path | Reader | None" = None) -> Self:
        """The index in a folder, created if it does not exist.

        `model` is a Reader, a folder or a name on the hub; None is the model that the index was built with,
        for a new index the built-in model.
        """
        return cls(Store(Path(folder).expanduser()), model)

    @property
    def folder(self) -> Path:
        """Where the index is stored."""
        return self._store.folder

    @property
    def model(self) -> str | None:
        """The name of the model that the index was built with."""
        return self._store.db.get("model")

    @cached_property
    def reader(self) -> "Reader":
        """The model, loaded when first needed; it must be the one that the index was built with."""
        model, stamp = self._model, None
        if model is None or isinstance(model, str | Path):
            from longspan.builtin import ensure
            from longspan.hub import DEFAULT, resolve
            from longspan.reader import load

            name = str(model or self.model or DEFAULT)
            ensure(name)
            folder = resolve(name)
            stamp = stamp_of(folder)
            reader = load(folder, task="encode", overflow="window")
        else:
            reader, name = model, "a Reader"
        if stamp is None or stamp != self._store.db.get("stamp"):
            self._check_model(reader, name, stamp)
        return reader

    def _check_model(self, reader: "Reader", name: str, stamp: str | None) -> None:
        """Refuse a model that the index was not built with; write down what identifies this one."""
        mark, known = fingerprint(reader), self._store.db.get("fingerprint")
        if known not in (None, mark):
            requirement = f"the one that the index was built with ({self.model})"
            value = f"{name}, which has changed since" if name == self.model else name
            raise bad("model", requirement, value, "Rebuild the index with --rebuild, or use another folder.")
        facts = {"fingerprint": mark, "model": self.model or name} | ({"stamp": stamp} if stamp else {})
        # A finished index is also useful where it cannot be written.
        with suppress(LongspanError) if known else nullcontext(), self._store.db.transaction():
            self._store.db.put(**facts)

    def add(self, paths: str | Path | Iterable[str | Path], *, progress: bool | None = None) -> Report:
        """Bring the index up to date with files and folders; files that are gone from them are removed.

        A file of the same size and time, or of the same content, is not read again, nor is a renamed one.
        Each group of files is committed as soon as it is encoded, so an interrupted run loses little.
        `progress` shows a bar; None: on a terminal, if it takes a while.
        """
        began, report = time.perf_counter(), Report()
        pending = self._compare(listed(paths), report)
        total, done = sum(file.size for file in pending), 0
        with progress_bar(total // 4, "tokens", shown=progress, scale=True) as bar:  # 4: a first guess
            for group in self._groups(pending, report):
                self._encode(group, report, bar.update)
                done += sum(file.size for file, _ in group)
                bar.expect(round(report.n_tokens * max(1.0, total / max(done, 1))))
        if report.removed or report.encoded:
            self._store.compact()
        report.seconds = time.perf_counter() - began
        return report

    def _compare(self, roots: Sequence[Path], report: Report) -> list[File]:
        """The files that must be encoded; records of deleted, renamed and touched files are updated."""
        known = {file.path: file for file in self._store.files()}
        present = dict.fromkeys(
            walk(
                roots,
                skipped=lambda path, reason: report.skipped.append((path, reason)),
                failed=lambda path, reason: report.failed.append((path, reason)),
            )
        )
        gone = {path for path in known if path not in present and within(path, roots) and is_gone(path)}
        lost = {known[path].digest: path for path in gone}
        pending, renamed = [], []
        for path in present:
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
                pending.append(replace(file, id=old.id if old else 0))
        gone -= {path for path, _ in renamed}
        report.removed = len(gone)
        if gone or renamed:
            with self._store.db.transaction():
                self._store.remove(sorted(gone))
                for path, file in renamed:
                    self._store.move(path, file)
        return pending

    def _groups(self, pending: Sequence[File], report: Report) -> Iterator[list[tuple[File, Document]]]:
        """Files with their texts, in groups of about GROUP characters."""
        group: list[tuple[File, Document]] = []
        size = 0
        for file in pending:
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

    def _encode(
        self, group: Sequence[tuple[File, Document]], report: Report, advance: Callable[[int], None]
    ) -> None:
        """Read a group of files with the model and commit it."""
        from longspan.search.passages import encode

        texts = [document.text for _, document in group]
        encodings = encode(self.reader, texts, advance=advance)
        records = [
            (
                replace(file, **encoding.reading._asdict()),
                encoding.table,
                [_row(document, span.start, span.end) for span in encoding.passages],
            )
            for (file, document), encoding in zip(group, encodings, strict=True)
        ]
        with self._store.db.transaction():
            self._store.add(records)
        for (file, _), encoding in zip(group, encodings, strict=True):
            report.changed += file.id > 0
            report.added += file.id == 0
            report.n_tokens += encoding.reading.n_tokens
            report.truncated += encoding.reading.truncated

    def search(
        self,
        query: str,
        top: int = 10,
        *,
        mode: str = "hybrid",
        by: str = "passage",
        inside: str | Path | Iterable[str | Path] | None = None,
    ) -> Hits:
        """The `top` passages that answer `query` best, only from the files or folders `inside` unless None.

        mode is "dense" (meaning), "bm25" (words) or "hybrid" (both). Meaning compares the query with every
        passage, and with the parts of the nearest. by="document" gives the best passage of each document and
        ranks documents as wholes: half by their own vector, half by that passage.
        """
        check_options(query, top, mode, by)
        roots = None if inside is None else listed(inside)
        if not len(self):
            return Hits(query, [])
        vector = None if mode == "bm25" else self._vector(query)
        with self._store.db.snapshot(), self._store.db.sound():
            view, depth = self._view(), max(DEPTH, top) if mode == "hybrid" else top
            rows = view.rows(roots)
            dense, words = view.rankings(query, vector, depth, rows, mode=mode, by=by)
            scores = fuse(dense, words) if mode == "hybrid" else dense or words
            hits = [view.hit(row, scores[row], dense.get(row), words.get(row)) for row in list(scores)[:top]]
        return Hits(query, hits)

    def _vector(self, query: str) -> FloatArray:
        vector: FloatArray = self.reader.encode_query(
            query, normalize=True, progress=False, overflow="window"
        )
        return vector.astype(np.float32)

    def _view(self) -> View:
        """The current state of the index, whichever process wrote last."""
        version = self._store.db.version
        if self._last is None or version != self._last[0]:
            with self._store.db.sound():
                self._last = version, View(self._store)
        return self._last[1]

    @property
    def files(self) -> list[Path]:
        """The files that the index holds."""
        return sorted(file.path for file in self._view().files)

    def __len__(self) -> int:
        return len(self._view())

    def __bool__(self) -> bool:
        return True

    def verify(self) -> None:
        """Compare the whole index with its checksums; damage raises a CheckpointError."""
        with self._store.db.sound():
            self._store.verify()

    def close(self) -> None:
        """Close the files of the index."""
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
