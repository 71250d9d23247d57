"""CUAD's own files (Hendrycks et al. 2021): master_clauses.csv, and a folder of contracts beside it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

from longspan.datasets.files import content
from longspan.datasets.published.base import Format
from longspan.datasets.records import Place, Record, get, wrong
from longspan.datasets.spans import Unmatched

QUESTION = (
    'Highlight the parts (if any) of this contract related to "{}" that should be reviewed by a lawyer.'
)
OMITTED = "<omitted>"
"""What stands in clauses for words between two parts."""
ANSWER = re.compile(r"- ?Answer$")
"""What columns end with that hold no words of the contract."""


def _rows(record: Record) -> Iterator[Record]:
    """A question for each column of clauses; each clause stands at the first place that has its words."""
    path = _contract(get(record.values, "Filename", str, record.place), record.place)
    text = content(path)
    for category, cell in record.values.items():
        if category == "Filename" or ANSWER.search(category):
            continue
        place = record.place.at(category)
        clauses = [part.strip() for clause in _clauses(cell, place) for part in clause.split(OMITTED)]
        yield record.child(
            {
                "id": f"{path.stem}__{category}",
                "question": QUESTION.format(category),
                "context": text,
                "answers": [{"text": clause} for clause in clauses if clause],
                "category": category,
                "file": path.name,
            },
            category,
        )


def _clauses(cell: object, place: Place) -> list[str]:
    """The texts in a cell, which is a list as Python writes it."""
    if cell == "":
        return []
    try:
        found = ast.literal_eval(str(cell))  # reads literals and runs nothing
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        found = None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise wrong(place, "clauses", "a list of texts as Python writes it", cell)
    return found


def _contract(name: str, place: Place) -> Path:
    """The text of a contract: some characters of names were replaced when the files were made."""
    wanted = _letters(name.rpartition(".")[0])
    for path in sorted(place.file.parent.glob("*/*.txt")):
        if _letters(path.stem) == wanted:
            return path
    raise Unmatched(f"{place}: there is no text of the contract {name!r} in a folder beside the file.")


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, normalize("NFKD", name.lower())))


CUAD = Format("cuad", frozenset({"Filename", "Document Name", "Document Name-Answer"}), _rows)
