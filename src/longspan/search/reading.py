"""The model reads documents of an index: what it makes of them is committed bit by bit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.errors import LongspanError
from longspan.progress import Estimate, Progress
from longspan.search import large
from longspan.search.records import Entry, Row
from longspan.search.store import Store
from longspan.search.update import Report

if TYPE_CHECKING:
    from longspan.reader import Reader
    from longspan.search.passages import Encoded


@dataclass(frozen=True)
class Reading:
    """A run of the model over documents, and what it reports to."""

    store: Store
    report: Report
    reader: "Callable[[], Reader]"
    tokens: str
    "How the vectors of tokens are kept."
    names: Mapping[int, Path]
    "A file of each document, by its id."
    bar: Progress
    estimate: Estimate

    def read(self, group: Sequence[Entry]) -> None:
        """Read some documents, or a large one; those that the model cannot read are reported."""
        model, mark = self.reader(), self.store.db.get("fingerprint")  # without a model nothing can be read
        if len(group) == 1 and group[0].characters > large.SEGMENT:
            self._read_large(model, mark, group[0])
            return
        encodings = self._encoded(model, group, [self.store.passages(entry) for entry in group])
        if encodings is None:
            for entry in group if len(group) > 1 else ():
                self.read([entry])
            return
        records = [
            (replace(entry, **encoding.reading._asdict()), encoding.tables)
            for entry, encoding in zip(group, encodings, strict=True)
        ]
        with self._writing(mark):
            self.store.put_vectors(records)
        self.report.read += len(group)
        for encoding in encodings:
            self._count(encoding)

    def _read_large(self, model: "Reader", mark: str | None, entry: Entry) -> None:
        """Read a document segment by segment, from where the last run ended."""
        done = large.progress_of(self.store, entry)
        for rows in large.segments(self.store, entry, done.passages):
            encodings = self._encoded(model, [entry], [rows])
            if encodings is None:
                return
            with self._writing(mark):
                done = large.advance(self.store, entry, done, encodings[0].tables, encodings[0].reading)
            self._count(encodings[0])
        with self._writing(mark):
            large.finish(self.store, entry, done)
        self.report.read += 1

    def _encoded(
        self, model: "Reader", group: Sequence[Entry], passages: Sequence[Sequence[Row]]
    ) -> "list[Encoded] | None":
        """What the model makes of documents; None, and a report if it is a single one, if that fails."""
        from longspan.search.passages import encode

        texts = [[row.text for row in rows] for rows in passages]
        size = sum(len(text) for own in texts for text in own)
        names = [str(self.names.get(entry.id, entry.title)) for entry in group]
        try:
            return encode(
                model,
                texts,
                self.tokens,
                names=names,
                expect=lambda count: self.estimate.learn(size, count),
                advance=self.bar.update,
            )
        except Exception as error:  # whatever it is, other documents can be read
            if len(group) == 1:
                what = str(error) if isinstance(error, LongspanError) else f"{type(error).__name__}: {error}"
                self.report.failed.append((Path(names[0]), f"the model cannot read it: {what}"))
            return None

    @contextmanager
    def _writing(self, mark: str | None) -> Iterator[None]:
        """A transaction on the index that the model was loaded for, which `mark` identifies."""
        with self.store.db.transaction():
            if self.store.db.get("fingerprint") != mark:
                raise LongspanError(f"The index `{self.store.folder}` was rebuilt. Run this again.")
            yield
            self.store.db.put(token_kind=self.tokens)

    def _count(self, encoding: "Encoded") -> None:
        self.report.n_tokens += encoding.reading.n_tokens
        self.report.truncated += encoding.reading.truncated
