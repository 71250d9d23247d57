"""Hyperpartisan news (Kiesel et al. 2019): articles in one XML file, their labels in another beside it."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.parsers import expat

from longspan.datasets.files import MOST, refusing, unpacked
from longspan.datasets.records import Place, Record
from longspan.errors import unreadable
from longspan.text.files.parsed import Refusal

ARTICLES, TRUTH = "articles", "ground-truth"
"""How the names of the two files begin."""
CHUNK = 1 << 16


class Article(NamedTuple):
    """An element of either file."""

    line: int
    values: dict[str, str]
    text: str


def articles(path: Path) -> Iterator[Record]:
    """A record for each article: its paragraphs, a line each, and its label, "true" or "false"."""
    beside = path.with_name(path.name.replace(ARTICLES, TRUTH, 1))
    if beside == path or not beside.is_file():
        reason = f"there is no file of labels beside it, {TRUTH} in place of {ARTICLES} in its name"
        raise unreadable(path, reason, "Only Hyperpartisan's XML files are read.")
    labels = {article.values.get("id"): article.values.get("hyperpartisan") for article in _elements(beside)}
    for article in _elements(path):
        label = labels.get(article.values.get("id"))
        values = {**article.values, "text": article.text, "label": label}
        yield Record(values, Place(path, article.line))


def _elements(path: Path) -> list[Article]:
    """All elements `article` of a file; entities of its own are refused."""
    found = list[Article]()
    paragraphs = [""]
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(name: str, values: dict[str, str]) -> None:
        if name == "article":
            found.append(Article(parser.CurrentLineNumber, values, ""))
            paragraphs[:] = [""]
        elif name == "p":
            paragraphs.append("")

    def end(name: str) -> None:
        if name == "article" and found:
            lines = [" ".join(paragraph.split()) for paragraph in paragraphs]
            found[-1] = found[-1]._replace(text="\n".join(filter(None, lines)))
        elif name == "p":
            paragraphs.append("")

    def characters(text: str) -> None:
        paragraphs[-1] += text

    def entity(*_: object) -> None:
        raise Refusal(f"line {parser.CurrentLineNumber} declares an entity")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = characters, entity
    with refusing(path), unpacked(path) as file:
        total = 0
        try:
            while data := file.read(CHUNK):
                total += len(data)
                if total > MOST:
                    raise Refusal(f"it holds more than {MOST:,} bytes")
                parser.Parse(data)
            parser.Parse(b"", True)
        except (expat.ExpatError, LookupError) as error:  # the latter for encodings that do not exist
            raise Refusal(f"it is not XML ({error})") from None
    return found
