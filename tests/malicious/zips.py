"""Zip files around good weights, each wrong in one way."""

import io
import struct
import warnings
import zipfile
from collections.abc import Iterable

from malicious.containers import DATA, archive, in_zip, torch_parts
from malicious.pickles import well_formed

CODE = well_formed()
PARTS = torch_parts(CODE)
GOOD = in_zip(CODE)
END = len(GOOD) - 22
(DIRECTORY,) = struct.unpack_from("<I", GOOD, END + 16)


def patched(*changes: tuple[int, bytes]) -> bytes:
    """The good zip with other bytes at some places."""
    data = bytearray(GOOD)
    for place, new in changes:
        data[place : place + len(new)] = new
    return bytes(data)


def number(value: int, size: str = "I") -> bytes:
    return struct.pack(f"<{size}", value)


def renamed(old: str, new: str) -> bytes:
    return archive({new if name == old else name: data for name, data in PARTS.items()})


def twice(names: Iterable[str]) -> bytes:
    """Members of which some are called the same."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            file.writestr(zipfile.ZipInfo(name), PARTS.get(name, CODE))
    return out.getvalue()


def wide(members: int = len(PARTS), size: int = 0, begin: int = 0, place: int = 0) -> bytes:
    """The good zip with the end records for large files, which say something else than the small one."""
    record = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, members, members, size, begin)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, place or END, 1)
    return GOOD[:END] + record + locator + GOOD[END:]


def zips() -> dict[str, bytes]:
    """Name of the trick -> file."""
    central = [DIRECTORY]
    while len(central) < len(PARTS):
        name_size = struct.unpack_from("<H", GOOD, central[-1] + 28)[0]
        central.append(central[-1] + 46 + name_size)
    first, storage = central[0], central[2]
    bomb = {**PARTS, "m/data/0": bytes(32 << 20)}
    return {
        "a bomb": archive(bomb, method=zipfile.ZIP_DEFLATED),
        "a compressed pickle": archive(PARTS, method=zipfile.ZIP_DEFLATED),
        "another compression": archive(PARTS, method=zipfile.ZIP_LZMA),
        "compressed in one header only": patched((8, number(8, "H"))),
        "compressed in the directory only": patched((first + 10, number(8, "H"))),
        "an encrypted member": patched((first + 8, number(1, "H"))),
        "encrypted in one header only": patched((6, number(1, "H"))),
        "two pickles": twice([*PARTS, "m/data.pkl"]),
        "two storages of one name": twice([*PARTS, "m/data/0"]),
        "two folders": twice([*PARTS, "n/data.pkl"]),
        "a folder in other letters": twice([*PARTS, "M/data.pkl"]),
        "no pickle": archive({name: data for name, data in PARTS.items() if name != "m/data.pkl"}),
        "no folder": renamed("m/data.pkl", "data.pkl"),
        "an absolute name": twice([*PARTS, "/m/data.pkl"]),
        "a name that goes up": twice([*PARTS, "m/../data.pkl"]),
        "a folder that goes up": archive(
            {name.replace("m/", "../", 1): data for name, data in PARTS.items()}
        ),
        "a drive": twice([*PARTS, "C:\\data.pkl"]),
        "a backslash": twice([*PARTS, "m\\data.pkl"]),
        "a folder below": twice([*PARTS, "m/data/0/1"]),
        "a storage that is not a number": twice([*PARTS, "m/data/x"]),
        "a script": archive({**PARTS, "m/constants.pkl": CODE, "m/code/__torch__.py": b"import os"}),
        "a Python file": twice([*PARTS, "m/setup.py"]),
        "a directory": twice([*PARTS, "m/"]),
        "a name that is not text": patched((first + 46, b"\xff"), (30, b"\xff")),
        "a name with a NUL": patched((first + 46, b"\0"), (30, b"\0")),
        "a name that differs": patched((30, b"n")),
        "a comment": GOOD[:-2] + number(4, "H") + b"PK\5\6",
        "bytes behind the end": GOOD + bytes(7),
        "bytes before the beginning": bytes(7) + GOOD,
        "another file before it": GOOD + GOOD,
        "several volumes": patched((END + 4, number(1, "H"))),
        "more members than there are": patched((END + 8, number(9, "H") * 2)),
        "fewer members than there are": patched((END + 8, number(3, "H") * 2)),
        "65,535 members": patched((END + 8, number(65_535, "H") * 2)),
        "a directory elsewhere": patched((END + 16, number(0))),
        "a directory of 4 GB": patched((END + 12, number(2**32 - 2))),
        "a member at 4 GB": patched((first + 42, number(2**32 - 2))),
        "a member of 4 GB": patched((first + 20, number(2**32 - 2) * 2)),
        "a member without its wide size": patched((first + 20, number(2**32 - 1) * 2)),
        "a member as large as the file": patched((storage + 20, number(len(GOOD)) * 2)),
        "a packed size that differs": patched((storage + 20, number(4))),
        "members on top of each other": patched((storage + 42, number(0))),
        "a member that begins in the directory": patched((storage + 42, number(DIRECTORY))),
        "a wide directory elsewhere": wide(size=END - DIRECTORY, begin=8),
        "a wide directory of 2^63 bytes": wide(size=2**63, begin=DIRECTORY),
        "2^63 members": wide(2**63, END - DIRECTORY, DIRECTORY),
        "a wide record elsewhere": wide(size=END - DIRECTORY, begin=DIRECTORY, place=2**62),
        "60,000 members": archive({**PARTS, **{f"m/data/{i}": b"" for i in range(1, 60_000)}}),
        "a storage too small": in_zip(CODE, {"0": bytes(20)}),
        "a storage too large": in_zip(CODE, {"0": bytes(28)}),
        "no storage": in_zip(CODE, {}),
        "another storage": in_zip(CODE, {"1": DATA["0"]}),
        "numbers in the other order": archive({**PARTS, "m/byteorder": b"big"}),
        "a byte order of 9 MB": archive({**PARTS, "m/byteorder": b"little" + bytes(9 << 20)}),
        "a pickle of 9 MB": in_zip(CODE + bytes(9 << 20)),
        "a pickle with something behind it": in_zip(CODE + b"N."),
        "an end only": GOOD[END:],
        "a beginning only": GOOD[:4],
        "nothing but a directory": b"PK\3\4" + GOOD[DIRECTORY:],
    }
