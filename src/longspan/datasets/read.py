"""From a file or a folder to labeled examples: nothing is trained or written before all of it is checked."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, TypedDict, Unpack

from longspan.datasets.conll03 import tokens
from longspan.datasets.conll12 import BEGIN, coreference
from longspan.datasets.dataset import Dataset, columns_of
from longspan.datasets.files import kind, lines, stem
from longspan.datasets.folders import files_of
from longspan.datasets.form import Example, Form
from longspan.datasets.hyperpartisan import articles
from longspan.datasets.json_files import json_file, json_lines
from longspan.datasets.labels import MISSING
from longspan.datasets.published.registry import format_of
from longspan.datasets.records import Place, Record, shown, wrong
from longspan.datasets.spans import Unmatched
from longspan.datasets.tables import parquet, separated
from longspan.errors import InputError, bad, one_of, unreadable
from longspan.words import plural

log = logging.getLogger("longspan")
READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": json_lines,
    ".ndjson": json_lines,
    ".json": json_file,
    ".csv": separated,
    ".tsv": separated,
    ".parquet": parquet,
    ".xml": articles,
}
IDS = ("id", "_id", "idx", "uid", "guid")
"""Columns that may hold ids."""
UNMATCHED = ("error", "drop")


class DataOptions(TypedDict, total=False):
    """How labeled data are read."""

    columns: Mapping[str, str] | None
    labels: Sequence[str] | None
    problem: str | None
    unmatched: str


class Labeled(NamedTuple):
    """An example and where it stands."""

    id: str
    place: Place
    example: Example
    rest: Mapping[str, object]


def read_dataset(
    path: str | os.PathLike[str], form: Form, *, split: str | None = None, **options: Unpack[DataOptions]
) -> Dataset:
    """The labeled examples in a file, or in the one split of a folder that is meant.

    `columns` names columns that are called otherwise, {"text": "body"}; `labels` are the names of the classes
    in the order of their numbers, `problem` is "single", "multi" or "regression" where data do not tell, and
    unmatched="drop" leaves out what has an answer that its text does not hold.
    """
    files = files_of(Path(path).expanduser())
    if split is None and len(files) > 1:
        raise bad("split", f"one of {', '.join(files)}", split, f"{path} holds several.")
    wanted = next(iter(files)) if split is None else one_of("split", split, [name for name in files if name])
    return _datasets({wanted: files[wanted]}, form, **options)[wanted]


def read_splits(
    path: str | os.PathLike[str], form: Form, **options: Unpack[DataOptions]
) -> dict[str, Dataset]:
    """The labeled examples of each split of a folder, with the same classes; options as in `read_dataset`."""
    files = files_of(Path(path).expanduser())
    if "" in files:
        raise bad("path", "a folder with files named train, validation or test", str(path), "Or split one.")
    return _datasets(files, form, **options)


def _datasets(
    files: Mapping[str, Sequence[Path]],
    form: Form,
    *,
    columns: Mapping[str, str] | None = None,
    labels: Sequence[str] | None = None,
    problem: str | None = None,
    unmatched: str = "error",
) -> dict[str, Dataset]:
    """The examples of all splits, their labels settled together."""
    one_of("unmatched", unmatched, UNMATCHED)
    if isinstance(labels, str):
        raise bad("labels", "a list of names", labels)
    found = {
        name: [one for path in paths for one in _read(path, form, columns or {}, unmatched == "drop")]
        for name, paths in files.items()
    }
    for name, examples in found.items():
        if not examples:
            raise unreadable(files[name][0], "it holds no examples")
        _check_ids(examples)
    together = [one for examples in found.values() for one in examples]
    settled, classes, kind_of_problem = form.settle(
        [one.example.label for one in together], [one.place for one in together], labels, problem
    )
    datasets, begin = {}, 0
    for name, examples in found.items():
        own = settled[begin : begin + len(examples)]
        begin += len(examples)
        datasets[name] = Dataset(
            names=form.names,
            inputs=tuple([one.example.inputs[i] for one in examples] for i in range(len(form.names))),
            labels=own,
            ids=[one.id for one in examples],
            places=[one.place for one in examples],
            documents=[_digest(one.example.document) for one in examples],
            classes=classes,
            problem=kind_of_problem,
            more=columns_of([{**one.rest, **one.example.more} for one in examples]),
        )
    return datasets


def _read(path: Path, form: Form, columns: Mapping[str, str], drop: bool) -> list[Labeled]:
    """The examples of a file, perhaps without those whose answers their texts do not hold."""
    found, dropped = list[Labeled](), list[Unmatched]()
    published = None
    for count, record in enumerate(_reader(path)(path)):
        if count == 0:
            published = format_of(record.values)
        rows = published.rows(record) if published else iter([record])
        while True:
            try:
                if (row := next(rows, None)) is None:
                    break
                found.append(_labeled(row, form, columns))
            except Unmatched as error:
                if not drop:
                    raise
                dropped.append(error)
    if dropped:
        log.warning("%s left out, the first because of %s", plural(len(dropped), "example"), dropped[0])
    return found


def _reader(path: Path) -> Callable[[Path], Iterator[Record]]:
    """What reads a file: its suffix tells, or its first line."""
    if (reader := READERS.get(kind(path))) is not None:
        return reader
    first = next((line.strip() for _, line in lines(path) if line.strip()), "")
    if first.startswith(("{", "[")):
        return json_lines if first.startswith("{") else json_file
    return coreference if BEGIN.match(first) else tokens


def _labeled(record: Record, form: Form, columns: Mapping[str, str]) -> Labeled:
    row, rest = form.row(record, columns)
    name = next((name for name in IDS if rest.get(name) not in MISSING), None)
    place = record.place
    given = rest.pop(name) if name else _own_id(place)
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise wrong(place, str(name), "a text or a whole number", given)
    return Labeled(str(given), place, form.make(row), rest)


def _own_id(place: Place) -> str:
    """What an example is called that has no id."""
    return f"{place.file.parent.name}/{stem(place.file)}:{place.line}:{place.inside}".rstrip(":")


def _check_ids(examples: Sequence[Labeled]) -> None:
    first: dict[str, Place] = {}
    for one in examples:
        if one.id in first:
            before = f"{one.place}: the id {shown(one.id)!r} has been given to {first[one.id]}."
            raise InputError(f"{before} Give each example an id of its own, or none.")
        first[one.id] = one.place


@lru_cache(maxsize=64)
def _digest(text: str) -> str:
    """The same for texts that differ in white space and case only."""
    return blake2b(
        " ".join(text.lower().split()).encode("utf-8", "surrogatepass"), digest_size=12
    ).hexdigest()
