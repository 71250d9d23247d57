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
from longspan.text.files.places import joined, paragraphs

BREAKS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011"}
LEVELS = {str(level): level for level in range(1, 10)}
OUTLINE = {str(level - 1): level for level in range(1, 10)}
"""Levels as Word counts them; "9" stands for body text."""
REMOVED = ("Fallback", "del", "moveFrom")
"""What repeats its neighbor for old programs, was deleted, or stands elsewhere since it was moved."""
OFF = ("0", "false", "off")


def parse(file: BinaryIO, characters: int) -> Parsed:
    """Body, footnotes and endnotes; blank lines separate paragraphs, tabs cells, line breaks rows."""
    with Package(file) as package:
        main = package.main("word/document.xml")
        folder = posixpath.dirname(main)
        body = _Body(characters, _Styles(package, posixpath.join(folder, "styles.xml")))
        package.stream(main, body.start, body.end, body.characters)
        flow = body.flow
        places = paragraphs(flow.text)
        for kind in ("foot", "end"):
            name = posixpath.join(folder, f"{kind}notes.xml")
            if name in package.members:
                package.stream(name, body.start, body.end, body.characters)
        return Parsed(
            flow.text,
            title=package.title("docProps/core.xml"),
            headings=tuple(flow.headings),
            hidden=flow.hidden,
            places=joined(places, flow.places),
        )


class _Styles:
    """What the styles say: the levels of those that mark headings, and which hide text.

    Programs in other languages name these styles differently; what they are is said in styles.xml.
    """

    def __init__(self, package: Package, member: str) -> None:
        self.levels = {"Title": 1, **{f"Heading{level}": level for level in range(1, 10)}}
        self.hidden: dict[str, bool] = {}
        self._style = ""
        if member in package.members:
            package.stream(member, self._start)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        value = attributes.get("val", "")
        if name == "style":
            self._style = attributes.get("styleId", "")
        elif name == "name":
            kind, _, number = value.lower().partition(" ")
            if kind in ("title", "heading"):
                self.levels[self._style] = LEVELS.get(number, 1)
        elif name == "basedOn":
            if value in self.levels:
                self.levels.setdefault(self._style, self.levels[value])
            self.hidden.setdefault(self._style, self.hidden.get(value, False))
        elif name == "outlineLvl":
            self.levels[self._style] = OUTLINE.get(value, 0)
        elif name == "vanish" and self._style:
            self.hidden[self._style] = value not in OFF


class _Body:
    """Running text from the elements of WordprocessingML, as it is shown when all changes are accepted."""

    def __init__(self, characters: int, styles: _Styles) -> None:
        self.flow = Flow(characters)
        self._styles = styles
        self._open = {"t": 0, "tbl": 0, "pPr": 0, **dict.fromkeys(REMOVED, 0)}
        self._hidden = [False]  # by the open paragraphs and runs; a text box has paragraphs inside of a run
        self._notes = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in self._open:
            self._open[name] += 1
        if name in ("p", "r"):
            self._hidden.append(name == "r" and self._hidden[-1])
        if any(self._open[each] for each in REMOVED):
            return
        value = attributes.get("val", "")
        levels = {"pStyle": self._styles.levels, "outlineLvl": OUTLINE}.get(name, {})
        if level := levels.get(value, 0):
            self.flow.begin_heading(level)
        if name in ("pStyle", "rStyle") and value in self._styles.hidden:
            self._hidden[-1] |= self._styles.hidden[value]
        elif name == "vanish" and not self._open["pPr"]:  # else it hides the mark at the paragraph's end
            self._hidden[-1] = value not in OFF
        elif name in ("footnote", "endnote") and "type" not in attributes:
            self._notes += 1
            self.flow.place(name, self._notes)
        elif name in BREAKS and not self._open["pPr"]:
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
        if name in ("p", "r"):
            self._hidden.pop()
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
        elif name in ("footnotes", "endnotes"):
            self._notes = 0

    def characters(self, text: str) -> None:
        if not self._open["t"] or any(self._open[each] for each in REMOVED):
            return
        if self._hidden[-1]:
            self.flow.hide(text)
        else:
            self.flow.words(text)
