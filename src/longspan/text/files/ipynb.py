"""Jupyter notebooks: the text and code of their cells, and a little of what the code printed."""

import json
from typing import BinaryIO

from longspan.text.files.parsed import Heading, Parsed, Refusal, too_long
from longspan.text.files.places import Marks
from longspan.text.files.plain import decode
from longspan.text.markup import markdown

LONGEST_OUTPUT = 1000
"""Characters of the output of a cell that are kept."""
BETWEEN_CELLS = "\n\n"


def parse(file: BinaryIO, characters: int) -> Parsed:
    """Markdown cells, code cells and the text of outputs, with a blank line between two."""
    text, replaced = decode(file.read())
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"it is no JSON ({error})", "Save it again.") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise Refusal("it holds no cells as notebooks since version 4 do", "Save it again with Jupyter.")
    parts: list[str] = []
    headings: list[Heading] = []
    size = 0
    marks = Marks()
    for number, cell in enumerate(cells, 1):
        for part, marked in _parts(cell):
            if marked:
                headings += [each._replace(start=each.start + size) for each in markdown(part)]
            marks.add(size, "cell", number)
            parts.append(part)
            size += len(part) + len(BETWEEN_CELLS)
            if size > characters + len(BETWEEN_CELLS):
                raise too_long(characters)
    return Parsed(BETWEEN_CELLS.join(parts), replaced=replaced, headings=tuple(headings), places=marks.places)


def _parts(cell: object) -> list[tuple[str, bool]]:
    """The source of a cell and its outputs, and whether each is Markdown."""
    if not isinstance(cell, dict):
        return []
    marked = cell.get("cell_type") == "markdown"
    outputs = cell.get("outputs")
    texts = [_output(each) for each in outputs] if isinstance(outputs, list) else []
    sources = [(_joined(cell.get("source")), marked), *((text, False) for text in texts)]
    return [(text, mark) for text, mark in sources if text.strip()]


def _output(output: object) -> str:
    if not isinstance(output, dict):
        return ""
    data = output.get("data")
    text = _joined(output.get("text")) or _joined(data.get("text/plain") if isinstance(data, dict) else None)
    if output.get("output_type") == "error":
        text = f"{output.get('ename', '')}: {output.get('evalue', '')}"
    return text if len(text) <= LONGEST_OUTPUT else text[:LONGEST_OUTPUT] + " ..."


def _joined(source: object) -> str:
    """A text, or its lines, as the format allows both."""
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""
