"""DOCX: the text of a Word document, read as a stream of XML without building a tree.

A reader of our own is simpler and safer here than python-docx: expat alone (no lxml), no document type
declarations, a few named members instead of the whole package, constant memory, and the text of tables, text
boxes and footnotes, which python-docx's paragraphs leave out.
"""

import posixpath
from typing import BinaryIO

from longspan.text.files.flow import Flow
from longspan.text.files.package import Package
from longspan.text.files.parsed import Parsed

BREAKS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011"}
LEVELS = {str(level): level for level in range(1, 10)}
OUTLINE = {str(level - 1): level for level in range(1, 10)}
"""Levels as Word counts them; "9" stands for body text."""


def parse(file: BinaryIO, characters: int) -> Parsed:
    """Body, footnotes and endnotes; blank lines separate paragraphs, tabs cells, line breaks rows."""
    with Package(file) as package:
        main = package.main("word/document.xml")
        folder = posixpath.dirname(main)
        body = _Body(characters, _heading_styles(package, posixpath.join(folder, "styles.xml")))
        notes = (posixpath.join(folder, f"{kind}notes.xml") for kind in ("foot", "end"))
        for name in (main, *notes):
            if name in package.members:
                package.stream(name, body.start, body.end, body.characters)
        title = package.title("docProps/core.xml")
        return Parsed(body.flow.text, title=title, headings=tuple(body.flow.headings))


def _heading_styles(package: Package, member: str) -> dict[str, int]:
    """The levels of the paragraph styles that mark headings.

    Programs in other languages name these styles differently; what they are is said in styles.xml.
    """
    levels = {"Title": 1, **{f"Heading{level}": level for level in range(1, 10)}}
    style = ""

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal style
        value = attributes.get("val", "")
        if name == "style":
            style = attributes.get("styleId", "")
        elif name == "name":
            kind, _, number = value.lower().partition(" ")
            if kind in ("title", "heading"):
                levels[style] = LEVELS.get(number, 1)
        elif name == "basedOn" and value in levels:
            levels.setdefault(style, levels[value])
        elif name == "outlineLvl":
            levels[style] = OUTLINE.get(value, 0)

    if member in package.members:
        package.stream(member, start)
    return levels


class _Body:
    """Running text from the elements of WordprocessingML."""

    def __init__(self, characters: int, styles: dict[str, int]) -> None:
        self.flow = Flow(characters)
        self._styles = styles
        self._open = {"Fallback": 0, "t": 0, "tbl": 0}  # a fallback repeats its neighbor for old programs

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in self._open:
            self._open[name] += 1
        elif self._open["Fallback"]:
            return
        elif name in ("pStyle", "outlineLvl"):
            levels = self._styles if name == "pStyle" else OUTLINE
            if level := levels.get(attributes.get("val", ""), 0):
                self.flow.begin_heading(level)
        elif name in BREAKS:
            mark = BREAKS[name]
            if mark == "\n":
                self.flow.lines(1)
            elif mark == "\t":
                self.flow.space(mark)
            else:
                self.flow.verbatim(mark)

    def end(self, name: str) -> None:
        if name in self._open:
            self._open[name] -= 1
        if name == "p":
            self.flow.end_heading()
        if name == "p" and self._open["tbl"]:
            self.flow.space(" ")
        elif name in ("p", "tbl"):
            self.flow.lines(2)
        elif name == "tc":
            self.flow.space("\t")
        elif name == "tr":
            self.flow.lines(1)

    def characters(self, text: str) -> None:
        if self._open["t"] and not self._open["Fallback"]:
            self.flow.words(text)
