"""Where the members of an uncompressed zip file are, read far more strictly than the format allows."""

import os
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

from longspan.errors import refused
from longspan.formats.files import cut_off, exactly

MOST_MEMBERS = 50_000
_END = struct.Struct("<4s4H2IH")
_LOCATOR = struct.Struct("<4sIQI")
_END_64 = struct.Struct("<4sQ2H2I4Q")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
_HARMLESS_FLAGS = 0x0808  # sizes follow the data; names are UTF-8
_SEE_EXTRA = 0xFFFFFFFF


class Member(NamedTuple):
    """The bytes of one member: `size` from `begin`."""

    begin: int
    size: int


class _Directory(NamedTuple):
    members: int
    size: int
    begin: int


def members(path: Path) -> dict[str, Member]:
    """Name -> place; members must be stored, named once, side by side and inside the file."""
    with path.open("rb") as file:
        directory = _directory(file, path)
        file.seek(directory.begin)
        data = exactly(file, directory.size, path)
        places: dict[str, Member] = {}
        here, taken = 0, 0
        for _ in range(directory.members):
            name, size, header, here = _central(data, here, path)
            if name in places:
                raise refused(path, f"it holds two members called {name!r}")
            begin = _local(file, name, header, path)
            if header < taken or (header > 0 and not places) or begin + size > directory.begin:
                raise refused(path, f"the member {name!r} overlaps others or leaves the file")
            taken = begin + size
            places[name] = Member(begin, size)
    if here != len(data):
        raise refused(path, "its directory holds more than it says")
    return places


def _directory(file: BinaryIO, path: Path) -> _Directory:
    """The central directory, which must fill the file up to the end records."""
    end = os.fstat(file.fileno()).st_size - _END.size
    if end < 0:
        raise cut_off(path)
    file.seek(end)
    mark, disk, first, here, total, size, begin, comment = _END.unpack(exactly(file, _END.size, path))
    if mark != b"PK\5\6":
        raise cut_off(path)
    if disk or first or here != total or comment:
        raise refused(path, "it has a zip comment or several volumes")
    locator = end - _LOCATOR.size
    if locator >= 0:
        file.seek(locator)
        mark, disk, place, disks = _LOCATOR.unpack(exactly(file, _LOCATOR.size, path))
        if mark == b"PK\6\7":
            end = locator - _END_64.size
            if disk or disks > 1 or place != end or end < 0:
                raise refused(path, "its zip end records do not agree")
            file.seek(end)
            record = _END_64.unpack(exactly(file, _END_64.size, path))
            if record[0] != b"PK\6\6" or record[1] != _END_64.size - 12 or any(record[4:6]):
                raise refused(path, "its zip end records do not agree")
            here, total, size, begin = record[6:]
    if here != total or total > MOST_MEMBERS or size < total * _CENTRAL.size:
        raise refused(path, f"it says that it holds {total:,} members")
    if begin + size != end or size > total * (_CENTRAL.size + 512):
        raise refused(path, "its directory is not where it says")
    return _Directory(total, size, begin)


def _central(data: bytes, here: int, path: Path) -> tuple[str, int, int, int]:
    """(name, size, offset of the local header, end of the record) of the central record at `here`."""
    if here + _CENTRAL.size > len(data):
        raise cut_off(path)
    mark, _, _, flags, method, _, _, _, packed, size, *rest = _CENTRAL.unpack_from(data, here)
    name_size, extra_size, comment_size, disk, _, _, header = rest
    extra = here + _CENTRAL.size + name_size
    end = extra + extra_size
    if mark != b"PK\1\2" or end > len(data) or comment_size or disk:
        raise refused(path, "its directory is damaged")
    try:
        name = data[here + _CENTRAL.size : extra].decode("utf-8")
    except UnicodeDecodeError:
        raise refused(path, "the name of a member is not text") from None
    if _SEE_EXTRA in (packed, size, header):
        size, packed, header = _wide(data[extra:end], size, packed, header, path)
    if method or packed != size:
        raise refused(path, f"the member {name!r} is compressed", "Save it with torch.save, which does not.")
    if flags & ~_HARMLESS_FLAGS:
        raise refused(path, f"the member {name!r} is encrypted or patched")
    return name, size, header, end


def _wide(extra: bytes, size: int, packed: int, header: int, path: Path) -> list[int]:
    """(size, packed size, offset), with the 64-bit numbers of `extra` where 32 bits are too few."""
    narrow = [size, packed, header]
    while len(extra) >= 4:
        kind, length = struct.unpack_from("<2H", extra)
        if kind == 1 and length >= 8 * narrow.count(_SEE_EXTRA) and length <= len(extra) - 4:
            wide = iter(struct.unpack_from(f"<{length // 8}Q", extra, 4))
            return [next(wide) if number == _SEE_EXTRA else number for number in narrow]
        extra = extra[4 + length :]
    raise refused(path, "its directory is damaged")


def _local(file: BinaryIO, name: str, header: int, path: Path) -> int:
    """Where the data of `name` begin; the local header must agree with the directory."""
    file.seek(min(header, 1 << 62))
    mark, _, flags, method, *_, name_size, extra_size = _LOCAL.unpack(exactly(file, _LOCAL.size, path))
    same = mark == b"PK\3\4" and exactly(file, name_size, path) == name.encode()
    if not same or method or flags & ~_HARMLESS_FLAGS:
        raise refused(path, f"the member {name!r} has another name, or is compressed, in its local header")
    return int(header + _LOCAL.size + name_size + extra_size)
