"""RTF: the text of a rich text file, read as a stream of control words."""

import codecs
import re
from typing import BinaryIO, NamedTuple

from longspan.text.files.flow import Flow
from longspan.text.files.parsed import LONGEST_TITLE, Parsed, Refusal, as_title
from longspan.text.files.places import paragraphs

DEEPEST = 1000
_TOKEN = re.compile(
    rb"\\(?P<word>[a-zA-Z]{1,32})(?P<number>-?[0-9]{1,10})? ?"
    rb"|\\'(?P<byte>[0-9a-fA-F]{2})"
    rb"|\\(?P<symbol>[^a-zA-Z])"
    rb"|(?P<brace>[{}])"
    rb"|(?P<plain>[^\\{}\r\n]{1,65536})"
)
# fmt: off
UNSEEN = frozenset((
    "fonttbl", "colortbl", "stylesheet", "listtable", "listoverridetable", "revtbl", "rsidtbl", "generator",
    "pict", "object", "themedata", "colorschememapping", "datastore", "latentstyles", "header", "headerl",
    "headerr", "headerf", "footer", "footerl", "footerr", "footerf", "filetbl", "xmlnstbl", "fldinst", "info",
    "bkmkstart", "bkmkend", "annotation", "atnid", "atnauthor", "pntext", "pgptbl", "mmathPr",
))
"""Groups whose text is not shown."""
CHARACTERS = {
    "emdash": "—", "endash": "–", "lquote": "‘", "rquote": "’", "ldblquote": "“", "rdblquote": "”",
    "bullet": "•", "emspace": " ", "enspace": " ", "qmspace": " ", "~": " ", "_": "\u2011", "-": "",
    "\\": "\\", "{": "{", "}": "}",
}
# fmt: on
LINES = {"par": 2, "sect": 2, "page": 2, "line": 1, "row": 1, "nestrow": 1, "\n": 2, "\r": 2}


HIDING = ("v", "deleted", "mvf")
"""Hidden text, and text that was deleted, or moved from here, while changes were tracked."""
CODECS = {"mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
# fmt: off
CHARSETS = {
    0: "cp1252", 77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "big5",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251",
    222: "cp874", 238: "cp1250", 254: "cp437", 255: "cp850",
}
# fmt: on
"""Of fonts, as Windows numbers them."""
MOST_FONTS = 10_000


def parse(file: BinaryIO, characters: int) -> Parsed:
    """The shown text: blank lines separate paragraphs, tabs cells, line breaks rows."""
    data = file.read()
    if not data.lstrip()[:5].startswith(b"{\\rtf"):
        raise Refusal("it does not begin like RTF", "Save it again as .rtf.")
    reader = _Reader(characters)
    place = 0
    while match := _TOKEN.search(data, place):
        place = match.end()
        if match["word"]:
            word = match["word"].decode("ascii")
            number = None if match["number"] is None else int(match["number"])
            if word == "bin":
                place += max(0, number or 0)
            else:
                reader.word(word, number)
        elif match["byte"]:
            reader.bytes(bytes.fromhex(match["byte"].decode("ascii")))
        elif match["symbol"]:
            reader.word(match["symbol"].decode("latin-1"), None)
        elif match["brace"]:
            reader.open() if match["brace"] == b"{" else reader.close()
        else:
            reader.bytes(match["plain"])
    reader.flush()
    if reader.depth > 0:
        raise Refusal("it ends inside of a group", "Save it again.")
    flow = reader.flow
    return Parsed(
        flow.text,
        title=as_title(reader.title),
        replaced=reader.replaced,
        headings=tuple(flow.headings),
        hidden=flow.hidden,
        places=paragraphs(flow.text),
    )


class _State(NamedTuple):
    """What a group may change for what is inside of it."""

    destination: str = ""
    skip: int = 1
    "Characters behind a character of Unicode that stand for it in old programs."
    hidden: frozenset[str] = frozenset()
    "The words that hide text and are in force."
    codec: str = ""
    "That of the font; without, the one of the file."


class _Reader:
    """What is shown, by groups: each has its own destination and number of characters to skip."""

    def __init__(self, characters: int) -> None:
        self.flow = Flow(characters)
        self.title = ""
        self.replaced = 0
        self._stack: list[_State] = []
        self._state = _State()
        self._codec = "cp1252"
        self._font = 0
        self._fonts: dict[int, str] = {}
        self._waiting = bytearray()  # of the file's encoding, in which a character may take two bytes
        self._skipping = 0
        self._starred = False
        self._high = 0  # the first half of a character outside of the basic plane
        self._table = False

    @property
    def depth(self) -> int:
        return len(self._stack)

    def open(self) -> None:
        self.flush()
        if self.depth >= DEEPEST:
            raise Refusal(f"its groups nest deeper than {DEEPEST} levels")
        self._stack.append(self._state)
        self._skipping = 0

    def close(self) -> None:
        self.flush()
        if not self._stack:
            raise Refusal("it closes a group that was not opened", "Save it again.")
        self._state = self._stack.pop()
        self._skipping = 0
        self._starred = False

    def word(self, word: str, number: int | None) -> None:
        """A control word or a control symbol."""
        if word == "u":
            self.flush()
            self._unicode((number or 0) & 0xFFFF)
            return
        self.flush()
        if self._skipping and len(word) == 1 and not word.isalpha():
            self._skipping -= 1
        elif word == "*":
            self._starred = True
        elif word in UNSEEN or self._starred:
            self._starred = False
            self._state = self._state._replace(destination="fonts" if word == "fonttbl" else "unseen")
        elif word == "title" and self._state.destination == "unseen":
            self._state = self._state._replace(destination="title")
        elif word == "uc":
            self._state = self._state._replace(skip=min(max(0, number or 0), 9))
        elif word == "ansicpg":
            self._codec = _codec(number or 0)
        elif word in CODECS:
            self._codec = CODECS[word]
        elif self._state.destination == "fonts":
            self._define(word, number or 0)
        elif not self._state.destination:
            self._format(word, number)

    def _define(self, word: str, number: int) -> None:
        """A word of the table of fonts."""
        if word == "f":
            self._font = number
        elif word == "fcharset" and number in CHARSETS and len(self._fonts) < MOST_FONTS:
            self._fonts[self._font] = CHARSETS[number]

    def _format(self, word: str, number: int | None) -> None:
        """What changes how text looks, or how its bytes are read."""
        hidden = self._state.hidden
        if word == "f":
            self._state = self._state._replace(codec=self._fonts.get(number or 0, ""))
        elif word in HIDING:
            changed = hidden - {word} if number == 0 else hidden | {word}
            self._state = self._state._replace(hidden=changed)
        elif word == "plain":
            self._state = self._state._replace(hidden=frozenset(), codec="")
        else:
            self._layout(word, number)

    def _layout(self, word: str, number: int | None) -> None:
        if word in CHARACTERS:
            self._write(CHARACTERS[word])
        elif word in LINES:
            self.flow.end_heading()
            self.flow.space(" ") if word == "par" and self._table else self.flow.lines(LINES[word])
        elif word in ("tab", "cell", "nestcell"):
            self.flow.space("\t")
        elif word == "pard":
            self.flow.end_heading()
            self._table = False
        elif word == "intbl":
            self._table = True
        elif word == "outlinelevel" and number is not None and 0 <= number < 9:
            self.flow.begin_heading(number + 1)

    def bytes(self, data: bytes) -> None:
        """Text in the encoding of the file."""
        self._starred = False
        skipped = min(self._skipping, len(data))
        self._skipping -= skipped
        if self._state.destination not in ("unseen", "fonts"):
            self._waiting += data[skipped:]

    def flush(self) -> None:
        if self._waiting:
            text = self._waiting.decode(self._state.codec or self._codec, "replace")
            self.replaced += text.count("\ufffd")
            self._waiting.clear()
            self._write(text)

    def _unicode(self, unit: int) -> None:
        self._skipping = self._state.skip
        self._starred = False
        if 0xD800 <= unit < 0xDC00:
            self._high = unit
            return
        low = 0xDC00 <= unit < 0xE000
        code = 0x10000 + ((self._high - 0xD800) << 10) + unit - 0xDC00 if low and self._high else unit
        self._high = 0
        self._write("\ufffd" if 0xD800 <= code < 0xE000 else chr(code))

    def _write(self, text: str) -> None:
        if self._state.destination == "title":
            self.title = (self.title + text)[:LONGEST_TITLE]
        elif not self._state.destination and self._state.hidden:
            self.flow.hide(text)
        elif not self._state.destination:
            self.flow.words(text)


def _codec(page: int) -> str:
    try:
        return codecs.lookup(f"cp{page}").name if page != 65001 else "utf-8"
    except LookupError:
        return "cp1252"
