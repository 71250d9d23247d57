"""Folders of data: the files of train, validation and test, as Hugging Face's datasets have them."""

import re
from collections.abc import Mapping
from pathlib import Path

from longspan.datasets.files import kind, stem
from longspan.datasets.hyperpartisan import ARTICLES
from longspan.errors import unreadable

SPLITS = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
"""Words of the names of files or folders, and the splits they mean."""
TABLES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
TOKENS = (".conll", ".bio", ".iob", ".iob2")
MAIN = "master_clauses.csv"
"""The file of CUAD's folder, whose others are its contracts."""


def files_of(path: Path) -> Mapping[str, list[Path]]:
    """The files of each split; those of a file or of a folder without splits under ""."""
    if not path.is_dir():
        return {"": [path]}
    if (path / MAIN).is_file():
        return {"": [path / MAIN]}
    found = sorted(file for pattern in ("*", "*/*") for file in path.glob(pattern) if _is_data(file))
    if not found:
        known = ", ".join((*TABLES, *TOKENS))
        raise unreadable(path, f"it holds no file of data ({known})", "Give the file itself.")
    splits: dict[str, list[Path]] = {}
    for file in found:
        splits.setdefault(_split(file, path), []).append(file)
    if len(splits) > 1:
        splits.pop("", None)
    for name, files in splits.items():
        kinds = sorted({kind(file) for file in files})
        if len(kinds) > 1:
            what = f"it holds {name or 'data'} as {' and '.join(kinds)}"
            raise unreadable(path, what, "Give one file, or a folder with files of one kind.")
    order = list(dict.fromkeys(SPLITS.values()))
    return dict(sorted(splits.items(), key=lambda split: order.index(split[0]) if split[0] else 0))


def _is_data(file: Path) -> bool:
    known = kind(file) in (*TABLES, *TOKENS) or kind(file).endswith("_conll")
    known |= kind(file) == ".xml" and file.name.startswith(ARTICLES)
    return known and not file.name.startswith(".") and file.is_file()


def _split(file: Path, folder: Path) -> str:
    """The split that the name of a file says, or that of the folder it is in."""
    names = [stem(file)] if file.parent == folder else [stem(file), file.parent.name]
    for name in names:
        for word in reversed(re.split("[^a-z]+", name.lower())):
            if word in SPLITS:
                return SPLITS[word]
    return ""
