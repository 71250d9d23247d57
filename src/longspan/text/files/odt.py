"""ODF: the text of LibreOffice's documents, presentations and tables, as a stream of XML."""

from typing import BinaryIO

from longspan.text.files.flow import Flow
from longspan.text.files.package import Package
from longspan.text.files.parsed import Parsed, Refusal
from longspan.text.files.places import paragraphs

UNSEEN = ("annotation", "tracked-changes", "note-citation", "bibliography-mark", "settings", "forms")
"""Comments, deleted text, numbers of notes, and what is no text."""
CONDITIONAL = ("hidden-text", "hidden-paragraph")
"""The first is shown or not itself, the second stands in a paragraph that is shown or not."""
CELLS = ("table-cell", "covered-table-cell")
MOST_COLUMNS = 100
"""Runs of hidden columns that are known."""
MOST_REPEATED = 1 << 21
"""Rows of a table; one that repeats an empty row to the end of the sheet has a million."""


def parse(file: BinaryIO, characters: int) -> Parsed:
    """Paragraphs, lists, tables and notes; blank lines separate paragraphs, tabs cells, line breaks rows."""
    with Package(file) as package:
        if "content.xml" not in package.members:
            raise Refusal("it is a zip file, but not of OpenDocument", "Save it again.")
        hidden: set[str] = set()
        for member in ("styles.xml", "content.xml"):
            if member in package.members:
                package.stream(member, _Styles(hidden).start)
        body = _Body(characters, hidden)
        package.stream("content.xml", body.start, body.end, body.characters)
        flow = body.flow
        return Parsed(
            flow.text,
            title=package.title("meta.xml"),
            headings=tuple(flow.headings),
            hidden=flow.hidden,
            places=flow.places or paragraphs(flow.text),
        )


def _repeats(attributes: dict[str, str], key: str) -> int:
    """How many rows or columns an element stands for."""
    count = attributes.get(key, "")
    return min(int(count), MOST_REPEATED) if count.isdecimal() and len(count) < 10 else 1


class _Styles:
    """Collects the names of the styles that hide what has them."""

    def __init__(self, hidden: set[str]) -> None:
        self._hidden, self._name = hidden, ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "style":
            self._name = attributes.get("name", "")
            if attributes.get("parent-style-name", "") in self._hidden:
                self._hidden.add(self._name)
        shown = attributes.get("display", "") not in ("none", "false")
        visible = attributes.get("visibility", "visible") == "visible"
        if name.endswith("-properties") and self._name and not (shown and visible):
            self._hidden.add(self._name)


class _Body:
    """Running text from the elements of ODF."""

    def __init__(self, characters: int, hidden: set[str]) -> None:
        self.flow = Flow(characters)
        self._styles = hidden
        self._open = {"body": 0, "p": 0, "h": 0, "table-cell": 0, "unseen": 0}
        self._hidden: list[str] = []  # the outermost element that is, and those of its name inside of it
        self._sheet, self._row, self._repeated, self._slide = "", 1, 0, 0
        self._is_spreadsheet = False
        self._columns, self._column = 0, 0  # how many were declared, and how many cells of the row began
        self._hidden_columns: list[range] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in UNSEEN:
            self._open["unseen"] += 1
        if name in self._open:
            self._open[name] += 1
        if not self._open["body"] or self._open["unseen"]:
            return
        self._place(name, attributes)
        if self._hidden:
            self._hidden += [name] * (name == self._hidden[0])
        elif self._is_hidden(name, attributes):
            self._hidden.append("p" if name == "hidden-paragraph" else name)
        if name in CELLS:
            self._column += _repeats(attributes, "number-columns-repeated")
        if name == "h" and not self._hidden:
            level = attributes.get("outline-level", "")
            self.flow.begin_heading(int(level) if level in tuple("123456789") else 1)
        elif name == "s":
            self.flow.space(" ")
        elif name == "tab":
            self.flow.space("\t")
        elif name == "line-break":
            self.flow.lines(1)

    def _is_hidden(self, name: str, attributes: dict[str, str]) -> bool:
        """Whether an element hides what is inside of it."""
        if name in CONDITIONAL:
            return attributes.get("is-hidden") == "true"
        return (
            attributes.get("style-name", "") in self._styles
            or (name == "section" and attributes.get("display") == "none")
            or (name == "table-row" and attributes.get("visibility", "visible") != "visible")
            or (name in CELLS and any(self._column in columns for columns in self._hidden_columns))
        )

    def _place(self, name: str, attributes: dict[str, str]) -> None:
        """Note where a person finds what follows, in presentations and spreadsheets."""
        if name == "spreadsheet":
            self._is_spreadsheet = True
        elif name == "page":
            self._slide += 1
            self.flow.place("slide", self._slide)
        elif name == "table" and self._is_spreadsheet:
            self._sheet, self._row, self._repeated = attributes.get("name", ""), 0, 1
            self._columns, self._hidden_columns = 0, []
        elif name == "table-column" and self._is_spreadsheet:
            first, self._columns = (
                self._columns,
                self._columns + _repeats(attributes, "number-columns-repeated"),
            )
            if (
                attributes.get("visibility", "visible") != "visible"
                and len(self._hidden_columns) < MOST_COLUMNS
            ):
                self._hidden_columns.append(range(first, self._columns))
        elif name == "table-row" and self._is_spreadsheet:
            self._row += self._repeated
            self._repeated, self._column = _repeats(attributes, "number-rows-repeated"), 0
            self.flow.place(f"sheet {' '.join(self._sheet.split())}, row", self._row)

    def end(self, name: str) -> None:
        if self._hidden and name == self._hidden[0] and self._open["body"] and not self._open["unseen"]:
            self._hidden.pop()
        if name in UNSEEN:
            self._open["unseen"] -= 1
        if name in self._open:
            self._open[name] -= 1
        if name == "h":
            self.flow.end_heading()
        if name in ("p", "h") and (self._open["table-cell"] or self._open["p"]):  # or in a note
            self.flow.space(" ")
        elif name in ("p", "h", "table", "page"):
            self.flow.lines(2)
        elif name == "table-cell":
            self.flow.space("\t")
        elif name == "table-row":
            self.flow.lines(1)

    def characters(self, text: str) -> None:
        if not self._open["body"] or not (self._open["p"] or self._open["h"]) or self._open["unseen"]:
            return
        if self._hidden:
            self.flow.hide(text)
        else:
            self.flow.words(text)
