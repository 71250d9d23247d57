"""XLSX: the rows of a workbook as lines; the names of sheets and of columns are headings."""

import re
from datetime import datetime, timedelta
from typing import BinaryIO

from longspan.text.files.flow import Flow
from longspan.text.files.package import Package
from longspan.text.files.parsed import Parsed, Refusal

MOST_ROWS = 2_000_000
MOST_STRINGS = 5_000_000
DATES = frozenset((*range(14, 23), *range(45, 48)))
"""Number formats that every workbook knows and that show dates or times."""
_OF_DATES = re.compile(r"[ymdhs]", re.IGNORECASE)
_NO_FORMAT = re.compile(r"\"[^\"]{0,99}\"|\[[^\]]{0,99}\]|\\\\.")
TEXTS = frozenset(("s", "str", "inlineStr"))
"""Kinds of cells that hold texts."""
EPOCH = datetime(1899, 12, 30)
TRUE = ("1", "true")
MOST_COLUMNS = 100
"""Runs of hidden columns that are known."""
_LETTERS = re.compile(r"[A-Z]{1,3}")


def parse(file: BinaryIO, characters: int) -> Parsed:
    """All sheets in order, what is hidden left out; formulas as their last values, dates as 2026-01-31."""
    with Package(file) as package:
        main = package.main("xl/workbook.xml")
        relations = package.relations(main)
        parts = {kind: target for kind, target in relations.values() if target in package.members}
        strings = _strings(package, parts.get("sharedStrings", ""), characters)
        dates = _date_styles(package, parts.get("styles", ""))
        flow = Flow(characters)
        for name, relation, shown in _sheets(package, main):
            kind, target = relations.get(relation, ("", ""))
            if kind == "worksheet" and target in package.members:
                rows = _Rows(flow, strings, dates, name, shown)
                if shown:
                    flow.begin_heading(1)
                    flow.words(name)
                    flow.end_heading()
                    flow.lines(1)
                package.stream(target, rows.start, rows.end, rows.characters)
                flow.lines(2)
        return Parsed(
            flow.text,
            title=package.title("docProps/core.xml"),
            headings=tuple(flow.headings),
            hidden=flow.hidden,
            places=flow.places,
        )


def _sheets(package: Package, main: str) -> list[tuple[str, str, bool]]:
    """The name and the relation of each sheet, and whether it is shown."""
    sheets: list[tuple[str, str, bool]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            shown = attributes.get("state", "visible") == "visible"
            sheets.append((attributes.get("name", ""), attributes.get("r:id", ""), shown))

    package.stream(main, start)
    return sheets


def _strings(package: Package, member: str, characters: int) -> list[str]:
    """The texts that cells refer to by number, without readings for pronunciation."""
    strings: list[str] = []
    parts: list[str] = []
    state = {"t": 0, "rPh": 0, "size": 0}

    def start(name: str, attributes: dict[str, str]) -> None:
        if name in state:
            state[name] += 1

    def add(text: str) -> None:
        if state["t"] and not state["rPh"]:
            parts.append(text)
            state["size"] += len(text)
            if state["size"] > characters:
                raise Refusal(f"its cells hold more than {characters:,} characters")

    def end(name: str) -> None:
        if name in state:
            state[name] -= 1
        if name == "si":
            strings.append(" ".join("".join(parts).split()))
            parts.clear()
            if len(strings) > MOST_STRINGS:
                raise Refusal(f"it holds more than {MOST_STRINGS:,} texts")

    if member:
        package.stream(member, start, end, add)
    return strings


def _date_styles(package: Package, member: str) -> set[str]:
    """The numbers of the cell styles that show dates."""
    formats: dict[str, str] = {}
    styles: list[str] = []
    inside = False

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal inside
        if name == "numFmt":
            formats[attributes.get("numFmtId", "")] = attributes.get("formatCode", "")
        elif name == "cellXfs":
            inside = True
        elif name == "xf" and inside:
            styles.append(attributes.get("numFmtId", ""))

    def end(name: str) -> None:
        nonlocal inside
        inside = inside and name != "cellXfs"

    if member:
        package.stream(member, start, end)
    shown = {key for key, code in formats.items() if _OF_DATES.search(_NO_FORMAT.sub("", code[:999]))}
    known = shown | {str(number) for number in DATES}
    return {str(number) for number, key in enumerate(styles) if key in known}


def _number(text: str) -> int:
    """A whole number of a file; 0 if there is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _column(cell: str) -> int:
    """The number of a cell's column, from 1.

    >>> _column("B7"), _column("AA1")
    (2, 27)
    """
    letters = _LETTERS.match(cell)
    number = 0
    for letter in letters[0] if letters else "":
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


class _Rows:
    """Lines from the cells of a sheet."""

    def __init__(self, flow: Flow, strings: list[str], dates: set[str], sheet: str, shown: bool) -> None:
        self._flow, self._strings, self._dates = flow, strings, dates
        self._unit = f"sheet {' '.join(sheet.split())}, row"
        flow.place(self._unit, 1)
        self._sheet_shown = self._row_shown = shown
        self._hidden_columns: list[range] = []
        self._row = self._column = 0
        self._kind = self._style = ""
        self._value: list[str] = []
        self._inside = False
        self._count = 0
        self._kinds: list[str] = []  # of the cells in the first row

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c":
            self._kind, self._style = attributes.get("t", "n"), attributes.get("s", "")
            self._column = _column(attributes.get("r", "")) or self._column + 1
            self._value.clear()
        elif name == "col" and attributes.get("hidden") in TRUE:
            first, last = (_number(attributes.get(key, "")) for key in ("min", "max"))
            self._hidden_columns = [*self._hidden_columns, range(first, last + 1)][:MOST_COLUMNS]
        elif name == "row":
            self._row, self._column = _number(attributes.get("r", "")) or self._row + 1, 0
            self._row_shown = self._sheet_shown and attributes.get("hidden") not in TRUE
            self._flow.place(self._unit, self._row)
            if not self._count:
                self._flow.begin_heading(2)
        self._inside = name in ("v", "t")

    def characters(self, text: str) -> None:
        if self._inside:
            self._value.append(text)

    def end(self, name: str) -> None:
        self._inside = False
        if name == "c":
            if not self._count:
                self._kinds.append(self._kind)
            text = self._shown("".join(self._value))
            if self._row_shown and not any(self._column in hidden for hidden in self._hidden_columns):
                self._flow.words(text)
                self._flow.space("\t")
            else:
                self._flow.hide(text)
        elif name == "row":
            self._flow.end_heading(keep=len(self._kinds) > 1 and TEXTS.issuperset(self._kinds))
            self._flow.lines(1)
            self._count += 1
            if self._count > MOST_ROWS:
                raise Refusal(f"a sheet has more than {MOST_ROWS:,} rows")

    def _shown(self, value: str) -> str:
        """What the cell shows, as far as its kind and style tell."""
        if self._kind == "s":
            number = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else -1
            return self._strings[number] if 0 <= number < len(self._strings) else ""
        if self._kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        if self._kind == "n" and self._style in self._dates:
            try:
                moment = EPOCH + timedelta(days=float(value))
            except (ValueError, OverflowError):
                return value
            return (
                f"{moment:%Y-%m-%d}" if moment.time() == datetime.min.time() else f"{moment:%Y-%m-%d %H:%M}"
            )
        return value
