"""EML: an e-mail as a text, its header lines first; attachments are named, not read."""

from email import policy
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from typing import BinaryIO

from longspan.text.files import html
from longspan.text.files.flow import Flow
from longspan.text.files.parsed import Parsed, as_title
from longspan.text.files.places import paragraphs
from longspan.text.files.plain import decode

HEADERS = ("Subject", "From", "To", "Cc", "Date")
LONGEST_HEADER = 10_000
MOST_PARTS = 1000
DEEPEST = 20
"""Parts in parts; mail that was forwarded ten times has twenty."""


def parse(file: BinaryIO, characters: int) -> Parsed:
    """Subject, sender, receivers and date, then the text: plain where there is a choice, else from HTML."""
    message: Message = BytesParser(policy=policy.compat32).parse(file)
    mail = _Mail(characters)
    mail.message(message, 0)
    return Parsed(
        mail.flow.text,
        title=as_title(_header(message, "Subject")),
        replaced=mail.replaced,
        headings=tuple(mail.flow.headings),
        hidden=mail.flow.hidden,
        places=paragraphs(mail.flow.text),
    )


class _Mail:
    """The running text of a message and of those inside of it."""

    def __init__(self, characters: int) -> None:
        self.flow = Flow(characters)
        self.replaced = 0
        self._parts = 0

    def message(self, message: Message, depth: int) -> None:
        """The header lines, and what follows them."""
        for name in HEADERS:
            if value := " ".join(_header(message, name).split()):
                self.flow.verbatim(f"{name}: {value}")
                self.flow.lines(1)
        self.flow.lines(2)
        self._part(message, depth)

    def _part(self, part: Message, depth: int) -> None:
        self._parts += 1
        kind = part.get_content_type()
        name = part.get_filename()
        if depth > DEEPEST or self._parts > MOST_PARTS:
            self._note("[More parts were left out]")
        elif kind == "message/rfc822" and part.is_multipart():
            for inner in _inside(part):
                self.message(inner, depth + 1)
        elif part.is_multipart():
            inside = _inside(part)
            for inner in _best(inside) if kind == "multipart/alternative" else inside:
                self._part(inner, depth + 1)
        elif name or part.get_content_disposition() == "attachment":
            self._note(f"Attachment: {_decoded(name or kind)}")
        elif kind in ("text/plain", "text/html"):
            self._text(part, kind)

    def _text(self, part: Message, kind: str) -> None:
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
        charset = str(part.get_content_charset(""))
        codec = html.codec_of(charset) if charset != "us-ascii" else ""  # written by programs that know none
        if kind == "text/html":
            self.replaced += html.feed(data, self.flow, codec)[1]
        else:
            text, replaced = decode(data, codec)
            self.replaced += replaced
            self.flow.verbatim(text.replace("\r\n", "\n").strip("\n"))
        self.flow.lines(2)

    def _note(self, text: str) -> None:
        self.flow.words(text)
        self.flow.lines(1)


def _inside(part: Message) -> list[Message]:
    payload = part.get_payload()
    return [each for each in payload if isinstance(each, Message)] if isinstance(payload, list) else []


def _best(choices: list[Message]) -> list[Message]:
    """Of the same text in several forms the plain one, else the last."""
    plain = [each for each in choices if each.get_content_type() == "text/plain"]
    return plain[:1] or choices[-1:]


def _header(message: Message, name: str) -> str:
    for key, value in message.raw_items():
        if key.lower() == name.lower():
            return _decoded(str(value))
    return ""


def _decoded(value: str) -> str:
    """A header's text in which words in other encodings are decoded, as are bytes that name none."""
    value, _ = decode(value[:LONGEST_HEADER].encode("utf-8", "surrogateescape"))
    try:
        return "".join(
            part if isinstance(part, str) else decode(part, html.codec_of(charset or ""))[0]
            for part, charset in decode_header(value)
        )
    except (LookupError, ValueError):
        return value
