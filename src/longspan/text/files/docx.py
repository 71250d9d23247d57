"""DOCX: the text of a Word document, read as a stream of XML without building a tree.

A reader of our own is simpler and safer here than python-docx: expat alone (no lxml), no document type
declarations, a few named members instead of the whole package, constant memory, and the text of tables, text
boxes and footnotes, which python-docx's paragraphs leave out.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Callable
from typing import BinaryIO
from xml.parsers import expat

from longspan.text.files.flow import Flow
from longspan.text.files.parsed import LONGEST_TITLE, Parsed, Refusal, as_title

MOST_MEMBERS = 10_000
MOST_UNPACKED = 1 << 30
"""Bytes that all members together may claim."""
MOST_RATIO = 250
"""How many times larger than packed a member may be that is read; text reaches about 20."""
SMALL = 1 << 20
"""Bytes up to which the ratio does not matter: empty pages pack well."""
DEEPEST = 1000
CHUNK = 1 << 16
LEVELS = {str(level): level for level in range(1, 10)}
OUTLINE = {str(level - 1): level for level in range(1, 10)}
"""Levels as Word counts them; "9" stands for body text."""
MAIN = "word/document.xml"
BREAKS = {"tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "\u2011"}

Start = Callable[[str, dict[str, str]], None]
End = Callable[[str], None]


def parse(file: BinaryIO, characters: int) -> Parsed:
    """Body, footnotes and endnotes; blank lines separate paragraphs, tabs cells, line breaks rows."""
    try:
        with zipfile.ZipFile(file) as package:
            members = _members(package)
            main = _main(package, members)
            body = _Body(characters, _heading_styles(package, members, posixpath.dirname(main)))
            notes = (posixpath.join(posixpath.dirname(main), f"{x}notes.xml") for x in ("foot", "end"))
            for name in (main, *notes):
                if name in members:
                    _stream(package, members[name], body.start, body.end, body.characters)
            headings = tuple(body.flow.headings)
            return Parsed(body.flow.text, title=_title(package, members), headings=headings)
    except (expat.ExpatError, LookupError) as error:  # the latter for encodings that do not exist
        raise Refusal(f"its XML is damaged ({error})", "Save it again.") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise Refusal(f"it is not a whole, plain zip file ({error})", "Save it again as .docx.") from None


def _members(package: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members by name, within the limits on their number and size."""
    infos = package.infolist()
    if len(infos) > MOST_MEMBERS:
        raise Refusal(f"it holds {len(infos):,} members, more than {MOST_MEMBERS:,}")
    if sum(member.file_size for member in infos) > MOST_UNPACKED:
        raise Refusal(f"it would unpack to more than {MOST_UNPACKED:,} bytes")
    members = {member.filename: member for member in infos}
    if len(members) != len(infos):
        raise Refusal("it holds two members of one name")
    return members


def _main(package: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> str:
    """The member with the text, which some programs name differently."""
    targets = [MAIN]

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("Type", "").endswith("/officeDocument"):
            targets.append(attributes.get("Target", "").lstrip("/"))

    if MAIN not in members and "_rels/.rels" in members:
        _stream(package, members["_rels/.rels"], start)
    if targets[-1] not in members:
        raise Refusal("it is a zip file, but not a Word document", "Save it again as .docx.")
    return targets[-1]


def _title(package: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]) -> str | None:
    parts: list[str] = []
    inside = False

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal inside
        inside = name == "title"

    def add(text: str) -> None:
        if inside and len(parts) < LONGEST_TITLE:
            parts.append(text)

    def end(name: str) -> None:
        nonlocal inside
        inside = False

    if "docProps/core.xml" in members:
        _stream(package, members["docProps/core.xml"], start, end, add)
    return as_title("".join(parts))


def _heading_styles(
    package: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], folder: str
) -> dict[str, int]:
    """The levels of the paragraph styles that mark headings.

    Programs in other languages name these styles differently; what they are is said in styles.xml.
    """
    levels = {"Title": 1, **{f"Heading{level}": level for level in range(1, 10)}}
    style = ""

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal style
        if name == "style":
            style = _value(attributes, "styleId")
        elif name == "name":
            kind, _, number = _value(attributes, "val").lower().partition(" ")
            if kind in ("title", "heading"):
                levels[style] = LEVELS.get(number, 1)
        elif name == "basedOn" and _value(attributes, "val") in levels:
            levels.setdefault(style, levels[_value(attributes, "val")])
        elif name == "outlineLvl":
            levels[style] = _level(name, attributes, {})

    member = posixpath.join(folder, "styles.xml")
    if member in members:
        _stream(package, members[member], start)
    return levels


def _level(name: str, attributes: dict[str, str], styles: dict[str, int]) -> int:
    """The level of a heading that the style or the outline level of its paragraph names; 0 of none."""
    value = _value(attributes, "val")
    if name == "pStyle":
        return styles.get(value, 0)
    return OUTLINE.get(value, 0)


def _value(attributes: dict[str, str], key: str) -> str:
    return next((value for name, value in attributes.items() if _local(name) == key), "")


def _stream(
    package: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    start: Start,
    end: End = lambda name: None,
    characters: Callable[[str], None] = lambda text: None,
) -> None:
    """Feed a member to the handlers; names come without namespaces, which differ between dialects."""
    if member.file_size > max(SMALL, MOST_RATIO * member.compress_size):
        raise Refusal(f"{member.filename[:80]} would unpack to more than {MOST_RATIO} times its size")
    if member.flag_bits & 1:
        raise Refusal("it is encrypted", "Save it without a password.")
    depth = 0

    def opened(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise Refusal(f"its XML nests deeper than {DEEPEST} levels")
        start(_local(name), attributes)

    def closed(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(_local(name))

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _no_doctype
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.CharacterDataHandler = characters
    with package.open(member) as stream:
        while chunk := stream.read(CHUNK):
            parser.Parse(chunk, False)
        parser.Parse(b"", True)


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _no_doctype(*_: object) -> None:
    """Without declarations there are no entities: neither a billion laughs nor external files."""
    raise Refusal("its XML holds a document type declaration, which no Word document needs")


class _Body:
    """Running text from the elements of WordprocessingML."""

    def __init__(self, characters: int, styles: dict[str, int]) -> None:
        self.flow = Flow(characters)
        self._styles = styles
        self._open = {"Fallback": 0, "t": 0, "tbl": 0}  # a fallback repeats its neighbor for old programs

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in self._open:
            self._open[name] += 1
        elif name in ("pStyle", "outlineLvl") and not self._open["Fallback"]:
            if level := _level(name, attributes, self._styles):
                self.flow.begin_heading(level)
        elif name in BREAKS and not self._open["Fallback"]:
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
