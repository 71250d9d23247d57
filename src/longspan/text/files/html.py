"""HTML: what a browser would show as text. Nothing is executed, nothing is fetched."""

import codecs
import re
from html.parser import HTMLParser
from typing import BinaryIO

from longspan.text.files.flow import Flow
from longspan.text.files.html_hidden import BLOCKS, LINES, Hidden
from longspan.text.files.parsed import LONGEST_TITLE, Parsed, Refusal, as_title
from longspan.text.files.places import LINE
from longspan.text.files.plain import decode

HEADINGS = {f"h{level}": level for level in range(1, 7)}
LONGEST_END = 8192
"""Characters of unfinished markup at the end of a page; the parser takes time quadratic in them."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([\w-]{1,40})", re.IGNORECASE)
# Python has more codecs than the web, and some were never meant for untrusted data.
_OF_THE_WEB = re.compile(r"utf-8|iso8859-\d+|cp125\d|cp866|cp949|koi8-[ru]|shift_jis|euc_\w+|gbk|gb\d+|big5")


def parse(file: BinaryIO, characters: int) -> Parsed:
    """The visible text: blocks on lines of their own, entities decoded, scripts and styles left out."""
    flow = Flow(characters)
    title, replaced = feed(file.read(), flow, lines=True)
    return Parsed(
        flow.text,
        title=as_title(title),
        replaced=replaced,
        headings=tuple(flow.headings),
        hidden=flow.hidden,
        places=flow.places,
    )


def feed(data: bytes, flow: Flow, codec: str = "", *, lines: bool = False) -> tuple[str | None, int]:
    """Write a page into a flow; its title, and how many U+FFFD stand for invalid bytes.

    A page without a byte order mark is decoded as `codec`, or as it says itself. `lines`: the flow notes on
    which line of the page each of its own stands.
    """
    text, replaced = decode(data, codec or _declared(data[:1024]))
    page = _Page(flow, lines)
    page.feed(text)
    if page.cdata_elem is None and page.rawdata.startswith("<") and len(page.rawdata) > LONGEST_END:
        reason = f"it ends inside a tag or comment that began {len(page.rawdata):,} characters before"
        raise Refusal(reason, "Download or save it again.")
    page.close()
    flow.end_heading()
    return page.title, replaced


def _declared(head: bytes) -> str:
    """The codec that a <meta> element names, if browsers know it; else ""."""
    charset = _CHARSET.search(head)
    return codec_of(charset[1].decode("ascii", "replace")) if charset else ""


def codec_of(charset: str) -> str:
    """The codec of a charset that browsers know, else "".

    >>> codec_of("latin1"), codec_of("utf-7"), codec_of("nonsense")
    ('cp1252', '', '')
    """
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return ""
    if name in ("iso8859-1", "ascii"):
        return "cp1252"  # as browsers do
    return name if _OF_THE_WEB.fullmatch(name) else ""


class _Page(HTMLParser):
    """Counts open elements instead of stacking them: depth and bad nesting cost nothing."""

    def __init__(self, flow: Flow, lines: bool) -> None:
        super().__init__(convert_charrefs=True)
        self.flow = flow
        self.title: str | None = None
        self._lines = lines
        self._open = {"title": 0, "pre": 0}
        self._hidden = Hidden()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if self._hidden.start(tag, attributes):
            return
        self._border(tag)
        if tag in HEADINGS:
            self.flow.begin_heading(HEADINGS[tag])
        elif tag in self._open:
            self._open[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if self._hidden.end(tag):
            return
        if tag in HEADINGS:
            self.flow.end_heading()
        self._border(tag)
        if tag in self._open:
            self._open[tag] = max(0, self._open[tag] - 1)

    def handle_data(self, data: str) -> None:
        if self._hidden:
            if self._hidden.counts:
                self.flow.hide(data)
        elif self._open["title"]:
            self.title = ((self.title or "") + data)[:LONGEST_TITLE]
        elif not self._lines:
            self._write(data)
        else:
            first, _ = self.getpos()
            for number, line in enumerate(_LINE.findall(data), first):
                self.flow.place(LINE, number)
                self._write(line)

    def _write(self, data: str) -> None:
        if self._open["pre"]:
            self.flow.verbatim(data)
        else:
            self.flow.words(data)

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """`<![anything` is a comment to browsers; the base class would stop with an error."""
        return self.parse_bogus_comment(i)

    def _border(self, tag: str) -> None:
        if tag in BLOCKS:
            self.flow.lines(2)
        elif tag in LINES:
            self.flow.lines(1)
        elif tag in ("td", "th"):
            self.flow.space("\t")
