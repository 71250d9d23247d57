"""Questions in a file: one on each line, or JSON objects with a `query` or `question`."""

import json
import sys
from pathlib import Path

from longspan.cli.inputs import STANDARD_INPUT
from longspan.errors import bad

KEYS = ("query", "question")
Problem = tuple[int, str]
"""The number of a line, and what is wrong with it."""


def read_queries(path: str) -> tuple[list[str], list[Problem]]:
    """The questions of a file, or of standard input if it is -, and the lines that hold none."""
    if path == STANDARD_INPUT:
        data = sys.stdin.buffer.read()
    elif not Path(path).expanduser().is_file():
        raise bad("--queries", "a file that exists, or - for standard input", path)
    else:
        data = Path(path).expanduser().read_bytes()
    queries, problems = [], []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            query = question(line.decode("utf-8-sig").strip())
            queries += [query] if query else []
        except ValueError as error:
            problems.append((number, str(error)))
    if not queries:
        raise bad("--queries", "a file that holds queries", path)
    return queries, problems


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
