"""ODF: the text of LibreOffice's documents, presentations and tables, as a stream of XML."""

from typing import BinaryIO

from longspan.text.files.flow import Flow
from longspan.text.files.package import Package
from longspan.text.files.parsed import Parsed, Refusal

UNSEEN = ("annotation", "tracked-changes", "note-citation", "bibliography-mark", "settings", "forms")
"""Comments, deleted text, numbers of notes, and what is no text."""


def parse(file: BinaryIO, characters: int) -> Parsed:
    """Paragraphs, lists, tables and notes; blank lines separate paragraphs, tabs cells, line breaks rows."""
    with Package(file) as package:
        if "content.xml" not in package.members:
            raise Refusal("it is a zip file, but not of OpenDocument", "Save it again.")
        body = _Body(characters)
        package.stream("content.xml", body.start, body.end, body.characters)
        title = package.title("meta.xml")
        return Parsed(body.flow.text, title=title, headings=tuple(body.flow.headings))


class _Body:
    """Running text from the elements of ODF."""

    def __init__(self, characters: int) -> None:
        self.flow = Flow(characters)
        self._open = {"body": 0, "p": 0, "h": 0, "table-cell": 0, "unseen": 0}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in UNSEEN:
            self._open["unseen"] += 1
        if name in self._open:
            self._open[name] += 1
        if self._open["unseen"]:
            return
        if name == "h":
            level = attributes.get("outline-level", "")
            self.flow.begin_heading(int(level) if level in tuple("123456789") else 1)
        elif name == "s":
            self.flow.space(" ")
        elif name == "tab":
            self.flow.space("\t")
        elif name == "line-break":
            self.flow.lines(1)

    def end(self, name: str) -> None:
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
        if self._open["body"] and (self._open["p"] or self._open["h"]) and not self._open["unseen"]:
            self.flow.words(text)
