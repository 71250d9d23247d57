"""Zip files of XML, such as office programs write: named members as streams of XML events, within limits.

No tree is built, no entity is known, nothing but the named members is unpacked.
"""

import posixpath
import zipfile
import zlib
from collections.abc import Callable
from types import TracebackType
from typing import BinaryIO, Self
from xml.parsers import expat

from longspan.text.files.parsed import LONGEST_TITLE, Refusal, as_title

MOST_MEMBERS = 10_000
MOST_UNPACKED = 1 << 30
"""Bytes that all members together may claim."""
MOST_RATIO = 250
"""How many times larger than packed a member may be that is read; text reaches about 20."""
SMALL = 1 << 20
"""Bytes up to which the ratio does not matter: empty pages pack well."""
DEEPEST = 1000
CHUNK = 1 << 16

Start = Callable[[str, dict[str, str]], None]
End = Callable[[str], None]
Characters = Callable[[str], None]


class Package:
    """An open zip file; whatever is wrong with it is a refusal."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.members: dict[str, zipfile.ZipInfo] = {}

    def __enter__(self) -> Self:
        try:
            self._zip = zipfile.ZipFile(self._file)
        except DAMAGES as error:
            raise _not_whole(error) from None
        infos = self._zip.infolist()
        if len(infos) > MOST_MEMBERS:
            raise Refusal(f"it holds {len(infos):,} members, more than {MOST_MEMBERS:,}")
        if sum(member.file_size for member in infos) > MOST_UNPACKED:
            raise Refusal(f"it would unpack to more than {MOST_UNPACKED:,} bytes")
        self.members = {member.filename: member for member in infos}
        if len(self.members) != len(infos):
            raise Refusal("it holds two members of one name")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()
        if isinstance(error, (expat.ExpatError, LookupError)):  # the latter for encodings that do not exist
            raise Refusal(f"its XML is damaged ({error})", "Save it again.") from None
        if isinstance(error, DAMAGES):
            raise _not_whole(error) from None

    def read(self, name: str) -> bytes:
        """All bytes of a member."""
        return self._zip.read(self._checked(name))

    def stream(
        self,
        name: str,
        start: Start,
        end: End = lambda name: None,
        characters: Characters = lambda text: None,
    ) -> None:
        """Feed a member to the handlers; names come without namespaces, which differ between dialects."""
        depth = 0

        def opened(name: str, attributes: dict[str, str]) -> None:
            nonlocal depth
            depth += 1
            if depth > DEEPEST:
                raise Refusal(f"its XML nests deeper than {DEEPEST} levels")
            start(_local(name), {_key(key): value for key, value in attributes.items()})

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
        with self._zip.open(self._checked(name)) as stream:
            while chunk := stream.read(CHUNK):
                parser.Parse(chunk, False)
            parser.Parse(b"", True)

    def _checked(self, name: str) -> zipfile.ZipInfo:
        member = self.members[name]
        if member.file_size > max(SMALL, MOST_RATIO * member.compress_size):
            raise Refusal(f"{member.filename[:80]} would unpack to more than {MOST_RATIO} times its size")
        if member.flag_bits & 1:
            raise Refusal("it is encrypted", "Save it without a password.")
        return member

    def title(self, name: str) -> str | None:
        """What the first element `title` of a member holds, if there is such a member."""
        parts: list[str] = []
        inside, over = False, False

        def start(name: str, attributes: dict[str, str]) -> None:
            nonlocal inside
            inside = name == "title" and not over

        def add(text: str) -> None:
            if inside and len(parts) < LONGEST_TITLE:
                parts.append(text)

        def end(name: str) -> None:
            nonlocal inside, over
            over = over or inside
            inside = False

        if name in self.members:
            self.stream(name, start, end, add)
        return as_title("".join(parts))

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """By its id, the type and the target of each relation of a member to another, as OOXML has them."""
        folder = posixpath.dirname(name)
        member = posixpath.join(folder, "_rels", posixpath.basename(name) + ".rels")
        targets: dict[str, tuple[str, str]] = {}

        def start(name: str, attributes: dict[str, str]) -> None:
            if name == "Relationship" and attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
                kind = attributes.get("Type", "").rpartition("/")[2]
                targets[attributes.get("Id", "")] = kind, target.lstrip("/")

        if member in self.members:
            self.stream(member, start)
        return targets

    def main(self, usual: str) -> str:
        """The member with the content, which some programs name differently."""
        if usual in self.members:
            return usual
        named = [target for kind, target in self.relations("").values() if kind == "officeDocument"]
        if not named or named[-1] not in self.members:
            raise Refusal("it is a zip file, but not of this format", "Save it again.")
        return named[-1]


DAMAGES = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def _not_whole(error: BaseException) -> Refusal:
    return Refusal(f"it is not a whole, plain zip file ({error})", "Save it again.")


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


def _key(name: str) -> str:
    """`r:id` is another attribute than `id`; elsewhere local names suffice."""
    return ("r:" if "/relationships " in name else "") + _local(name)


def _no_doctype(*_: object) -> None:
    """Without declarations there are no entities: neither a billion laughs nor external files."""
    raise Refusal("its XML holds a document type declaration, which no office document needs")
