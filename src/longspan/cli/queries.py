"""Questions in a file: one on each line, or JSON objects with a `query` or `question`."""

import json
import sys
from pathlib import Path
from typing import NamedTuple

from longspan.cli.inputs import STANDARD_INPUT
from longspan.errors import bad

KEYS = ("query", "question")


class Line(NamedTuple):
    """A line of a file of questions that is not empty."""

    number: int
    query: str
    "The question; all of the line if it holds none."
    problem: str = ""
    "Why it cannot be searched for."

    def as_json(self) -> str:
        """The problem as the output shows it among answers."""
        return json.dumps({"query": self.query, "line": self.number, "error": self.problem})


def read_queries(path: str) -> list[Line]:
    """The questions of a file, or of standard input if it is -."""
    from longspan.search.query import Query

    if path == STANDARD_INPUT:
        data = sys.stdin.buffer.read()
    elif not Path(path).expanduser().is_file():
        raise bad("--queries", "a file that exists, or - for standard input", path)
    else:
        data = Path(path).expanduser().read_bytes()
    lines = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            query = question(line.decode("utf-8-sig").strip())
            if query:
                Query.parse(query)
                lines.append(Line(number, query))
        except ValueError as error:
            lines.append(Line(number, line.decode("utf-8-sig", "replace").strip(), str(error)))
    return lines


def question(line: str) -> str:
    """The question of a line; a ValueError says what is wrong with it.

    >>> question("Who pays?"), question('{"question": "Who pays?", "file": "a.txt"}')
    ('Who pays?', 'Who pays?')
    """
    if not line.startswith("{"):
        return line
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error})") from None
    query = next((record[key] for key in KEYS if key in record), None)
    if not isinstance(query, str) or not query.strip():
        raise ValueError(f"it must hold a text as {' or '.join(KEYS)}")
    return query.strip()
