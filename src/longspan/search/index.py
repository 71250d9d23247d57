"""Index: files in, the passages that answer a query out; only what is new or changed is ever encoded."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import longspan
from longspan.errors import LongspanError, bad
from longspan.search.rank import any_word, asked, fused, scan
from longspan.search.results import Hit, Hits
from longspan.search.store import File, Row, Store, slots_of
from longspan.search.update import Report, bar, digest, fingerprint, listed, within
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
        self._seen: tuple[int, int] | None = None

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
        return self._store.get("model")

    @cached_property
    def reader(self) -> "Reader":
        """The model, loaded when it is first needed; it must be the one that the index was made with."""
        given = self._model
        if given is None or isinstance(given, str | Path):
            from longspan.checkpoints.default import folder_of

            name = str(given or self.model or "default")
            reader = longspan.load(folder_of(name), task="encode", overflow="window")
        else:
            reader, name = given, "a Reader"
        mark, known = fingerprint(reader), self._store.get("fingerprint")
        if known is None:
            with self._store.transaction():
                self._store.put(fingerprint=mark, model=name)
        elif known != mark:
            raise bad(
                "model", f"the one that the index was made with ({self.model})", name, "Rebuild the index."
            )
        return reader

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
        if report.removed or report.changed:
            self._store.compact()
        report.seconds = time.perf_counter() - began
        return report

    def _compare(self, roots: Sequence[Path], report: Report) -> list[File]:
        """The files that must be encoded; those that are gone, renamed or only touched are dealt with."""
        known = {file.path: file for file in self._store.files()}
        found = dict.fromkeys(walk(roots, skipped=lambda path, why: report.skipped.append((path, why))))
        gone = {path for path in known if path not in found and within(path, roots) and not path.exists()}
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
            with self._store.transaction():
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
        with self._store.transaction():
            for (file, document), (spans, vectors, reading) in zip(group, encoded, strict=True):
                rows = [_row(document, span.start, span.end) for span in spans]
                self._store.add(replace(file, **reading._asdict()), vectors, rows)
        for (file, _), (_, _, reading) in zip(group, encoded, strict=True):
            report.changed += file.id > 0
            report.added += file.id == 0
            report.n_tokens += reading.n_tokens
            report.truncated += reading.truncated

    def search(
        self,
        query: str,
        top: int = 10,
        *,
        mode: str = "hybrid",
        inside: str | Path | Iterable[str | Path] | None = None,
    ) -> Hits:
        """The `top` passages that answer `query` best, only from the files or folders `inside` if given.

        mode is "dense" (an exact scan for the largest cosine), "bm25" (words) or "hybrid" (both).
        """
        asked(query, top, mode)
        files = self._files()
        if inside is not None:
            roots = listed(inside)
            files = [file for file in files if within(file.path, roots)]
        if not sum(file.passages for file in files):
            return Hits(query, [])
        depth = max(DEPTH, top) if mode == "hybrid" else top
        dense = {} if mode == "bm25" else self._by_meaning(query, depth, files)
        words = {} if mode == "dense" else self._by_words(query, depth, files)
        scores = dense or words
        if mode == "hybrid":
            scores = fused(dense, words)
        best = sorted(scores, key=lambda number: (-scores[number], number))[:top]
        return Hits(query, [self._hit(n, scores[n], dense.get(n), words.get(n)) for n in best])

    def _by_meaning(self, query: str, count: int, files: Sequence[File]) -> dict[int, float]:
        """Passages and their cosines, largest first: every one is looked at."""
        vector = self.reader.encode_query(query, normalise=True, progress=False, overflow="window")
        slots = slots_of(files)
        rows, scores = scan(self._vectors, vector, slots, count)
        begins = np.array([file.slot for file in files])
        owners = np.searchsorted(begins, rows, side="right") - 1
        numbers = [files[i].first + int(row) - files[i].slot - 1 for i, row in zip(owners, rows, strict=True)]
        return dict(zip(numbers, scores.tolist(), strict=True))

    def _by_words(self, query: str, count: int, files: Sequence[File]) -> dict[int, float]:
        """Passages and their BM25, largest first."""
        words = any_word(query)
        if not words:
            return {}
        limit, values = "", []
        if len(files) < len(self._files()):
            limit = "AND rowid IN (SELECT id FROM passages WHERE file IN (SELECT value FROM json_each(?)))"
            values = [str([file.id for file in files])]
        found = self._store.rows(
            f"SELECT rowid, -rank FROM words WHERE words MATCH ? {limit} ORDER BY rank LIMIT ?",
            *(words, *values, count),
        )
        return dict(found)

    def _hit(self, number: int, score: float, dense: float | None, bm25: float | None) -> Hit:
        row = self._store.rows("SELECT file, start, stop, page, line FROM passages WHERE id = ?", number)[0]
        text = self._store.rows("SELECT text FROM words WHERE rowid = ?", number)[0][0]
        path = next(file.path for file in self._files() if file.id == row[0])
        start, end, page, line = row[1:]
        where = {"file": path, "page": page, "line": line, "start": start, "end": end}
        return Hit(**where, score=score, dense=dense, bm25=bm25, text=text)

    def _files(self) -> list[File]:
        """The files as they are now, with their vectors, also after another process has written."""
        version = self._store.version
        if version != self._seen:
            self._known, self._vectors, self._seen = self._store.files(), self._store.vectors(), version
        return self._known

    @property
    def files(self) -> list[Path]:
        """What the index holds."""
        return sorted(file.path for file in self._files())

    def __len__(self) -> int:
        return sum(file.passages for file in self._files())

    def __bool__(self) -> bool:
        return True

    def verify(self) -> None:
        """Read everything and compare it with its checksums; damage is an error."""
        self._store.verify()

    def close(self) -> None:
        """Let go of the files."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r}, {len(self._files())} files, {len(self)} passages, {self.model})"


def _row(document: Document, start: int, end: int) -> Row:
    return Row(start, end, document.page_of(start), document.line_of(start), document.text[start:end])
