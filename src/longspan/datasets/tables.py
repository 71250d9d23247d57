"""Tables: CSV, TSV and Parquet."""

import csv
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from longspan.datasets.files import LONGEST, MOST, kind, lines, refusing
from longspan.datasets.records import Place, Record
from longspan.errors import unreadable
from longspan.text.files.parsed import Refusal

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LIMIT = Lock()


def separated(path: Path) -> Iterator[Record]:
    """A record for each row under the header."""
    with refusing(path), _long_fields():
        yield from list(_rows(path))


def _rows(path: Path) -> Iterator[Record]:
    source = csv.reader((line for _, line in lines(path)), delimiter=DELIMITERS[kind(path)], strict=True)
    try:
        header = next(source, [])
        twice = [name for name, count in Counter(header).items() if count > 1]
        if not header or twice:
            reason = f"its header has {twice[0]!r} twice" if twice else "it has no header"
            raise Refusal(reason, "The first line must name the columns.")
        begin = source.line_num + 1
        for row in source:
            if row and len(row) != len(header):
                there = f"line {begin} has {len(row)} cells under a header of {len(header)}"
                raise Refusal(there, "Quote cells that hold the delimiter.")
            if row:
                yield Record(dict(zip(header, row, strict=True)), Place(path, begin))
            begin = source.line_num + 1
    except csv.Error as error:
        raise Refusal(f"line {source.line_num} is no row ({error})") from None


@contextmanager
def _long_fields() -> Iterator[None]:
    """Cells may hold whole documents here; the module csv has one limit for a process."""
    with _LIMIT:
        before = csv.field_size_limit(LONGEST)
        try:
            yield
        finally:
            csv.field_size_limit(before)


def parquet(path: Path) -> Iterator[Record]:
    """A record for each row."""
    try:
        arrow: Any = import_module("pyarrow")
        reader: Any = import_module("pyarrow.parquet")
    except ImportError:
        repair = "Install it: pip install longspan[parquet]"
        raise unreadable(path, "reading Parquet needs pyarrow", repair) from None
    number = 0
    try:
        with refusing(path), reader.ParquetFile(path) as file:
            groups = range(file.metadata.num_row_groups)
            if sum(file.metadata.row_group(group).total_byte_size for group in groups) > MOST:
                raise Refusal(
                    f"it holds more than {MOST:,} bytes", "Cut it into several files in one folder."
                )
            for batch in file.iter_batches(batch_size=256):
                for values in batch.to_pylist():
                    number += 1
                    yield Record(values, Place(path, number))
    except arrow.ArrowException as error:
        raise unreadable(path, f"it is no Parquet file, or damaged ({error})") from None
