"""PPTX: the text of slides and of their notes; a slide is a page, its title a heading."""

from typing import BinaryIO

from longspan.text.files.flow import Flow
from longspan.text.files.package import Package
from longspan.text.files.parsed import Heading, Parsed, too_long
from longspan.text.files.places import counted

BETWEEN_SLIDES = "\n\n"
TITLES = ("title", "ctrTitle")
SHAPES = ("sp", "graphicFrame", "grpSp", "spTree", "pic", "cxnSp")
TRUE, FALSE = ("1", "true"), ("0", "false")


def parse(file: BinaryIO, characters: int) -> Parsed:
    """The slides in their order; blank lines separate shapes, tabs cells, line breaks paragraphs."""
    with Package(file) as package:
        main = package.main("ppt/presentation.xml")
        texts: list[str] = []
        pages: list[int] = []
        headings: list[Heading] = []
        size = 0
        hidden = 0
        for slide in _slides(package, main):
            flow = _slide(package, slide, characters)
            hidden += flow.hidden
            pages.append(size)
            texts.append(flow.text)
            headings += [heading._replace(start=heading.start + size) for heading in flow.headings]
            size += len(flow.text) + len(BETWEEN_SLIDES)
            if size > characters + len(BETWEEN_SLIDES):
                raise too_long(characters)
        title = package.title("docProps/core.xml")
        return Parsed(
            BETWEEN_SLIDES.join(texts),
            tuple(pages),
            title,
            headings=tuple(headings),
            hidden=hidden,
            places=counted("slide", pages),
        )


def _slides(package: Package, main: str) -> list[str]:
    relations = package.relations(main)
    slides: dict[str, None] = {}

    def start(name: str, attributes: dict[str, str]) -> None:
        if name == "sldId":
            kind, target = relations.get(attributes.get("r:id", ""), ("", ""))
            if kind == "slide" and target in package.members:
                slides[target] = None

    package.stream(main, start)
    return list(slides)


def _slide(package: Package, member: str, characters: int) -> Flow:
    """The shapes of a slide, then what its notes say."""
    shapes = _Shapes(characters)
    package.stream(member, shapes.start, shapes.end, shapes.characters)
    for kind, target in package.relations(member).values():
        if kind == "notesSlide" and target in package.members:
            shapes.flow.lines(2)
            shapes.notes = True
            package.stream(target, shapes.start, shapes.end, shapes.characters)
    return shapes.flow


class _Shapes:
    """Running text from the elements of DrawingML."""

    def __init__(self, characters: int) -> None:
        self.flow = Flow(characters)
        self.notes = False
        self._inside = False  # an element of text
        self._repeated = False  # the number of the slide, a date or a footer
        self._hidden = [False]  # whether the slide is, and each of the open shapes
        self._title = False
        self._cells = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        kind = attributes.get("type", "")
        if name == "sld":
            self._hidden[0] = attributes.get("show") in FALSE
        elif name in SHAPES:
            self._hidden.append(False)
            self._repeated = self._title = False
        elif name == "cNvPr":
            self._hidden[-1] |= attributes.get("hidden") in TRUE
        elif name == "ph":
            self._repeated = kind in ("sldNum", "dt", "ftr", "hdr", "sldImg")
            self._title = kind in TITLES and not self.notes
            if self._title:
                self.flow.begin_heading(1)
        elif name == "tc":
            self._cells += 1
        elif name == "br":
            self.flow.space(" ") if self._title else self.flow.lines(1)
        self._inside = name == "t" and not self._repeated

    def end(self, name: str) -> None:
        self._inside = False
        if name in SHAPES:
            self._hidden.pop()
        if name == "sp":
            self.flow.end_heading()
            self._title = False
        if name in ("sp", "graphicFrame"):
            self.flow.lines(2)
        elif name == "p":
            self.flow.space(" ") if self._title or self._cells else self.flow.lines(1)
        elif name == "tc":
            self._cells -= 1
            self.flow.space("\t")
        elif name == "tr":
            self.flow.lines(1)

    def characters(self, text: str) -> None:
        if self._inside and any(self._hidden):
            self.flow.hide(text)
        elif self._inside:
            self.flow.words(text)
