"""EPUB: the chapters of a book in the order in which they are read, each a page of XHTML."""

import posixpath
from typing import BinaryIO
from urllib.parse import unquote

from longspan.text.files import html
from longspan.text.files.flow import Flow
from longspan.text.files.package import Package
from longspan.text.files.parsed import Parsed, Refusal

PAGES = ("application/xhtml+xml", "text/html")


def parse(file: BinaryIO, characters: int) -> Parsed:
    """The text of all chapters, with a blank line between two."""
    with Package(file) as package:
        if "META-INF/encryption.xml" in package.members and "META-INF/rights.xml" in package.members:
            raise Refusal("it is encrypted", "Save it without protection.")
        contents = _contents(package)
        flow = Flow(characters)
        replaced = 0
        for number, member in enumerate(_chapters(package, contents), 1):
            flow.place("part", number)
            replaced += html.feed(package.read(member), flow)[1]
            flow.lines(2)
        return Parsed(
            flow.text,
            title=package.title(contents),
            replaced=replaced,
            headings=tuple(flow.headings),
            hidden=flow.hidden,
            places=flow.places,
        )


def _contents(package: Package) -> str:
    """The member that lists the chapters."""
    named: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "rootfile":
            named.append(attributes.get("full-path", ""))

    if "META-INF/container.xml" in package.members:
        package.stream("META-INF/container.xml", start)
    if not named or named[0] not in package.members:
        raise Refusal("it is a zip file, but not a book in EPUB", "Download or save it again.")
    return named[0]


def _chapters(package: Package, contents: str) -> list[str]:
    """The members with text, in the order of the spine."""
    items: dict[str, str] = {}
    spine: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "item" and attributes.get("media-type") in PAGES:
            path = unquote(attributes.get("href", "").partition("#")[0])
            items[attributes.get("id", "")] = posixpath.normpath(
                posixpath.join(posixpath.dirname(contents), path)
            )
        elif name == "itemref":
            spine.append(attributes.get("idref", ""))

    package.stream(contents, start)
    chapters = list(dict.fromkeys(items[name] for name in spine if name in items))
    missing = [name for name in chapters if name not in package.members]
    if missing:
        raise Refusal(f"its chapter {missing[0][:80]} is missing", "Download or save it again.")
    return chapters
