"""A checkpoint of TensorFlow is read only if its index and its files agree to the byte."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from longspan.errors import CheckpointError
from longspan.formats.tensorflow import open_bundle
from longspan.formats.weights import open_weights
from unit.formats.bundle import block, crc, entry, header, index, masked, table, write
from unit.text.tiny import field, varint

Judge = Callable[[Callable[[], object]], str]
DATA = np.arange(6, dtype="<f4").tobytes()
INDEX, FILE = "model.ckpt.index", "model.ckpt.data-00000-of-00001"
FIRST, GOOD = (b"", header()), (b"w/kernel", entry(DATA, (2, 3)))


def rows(value: bytes, *, first: bytes = header(), key: bytes = b"w/kernel") -> bytes:
    return table([(b"", first), (key, value)])


def rewired(data: bytes, begin: int, size: int) -> bytes:
    """The footer says that the index of blocks lies elsewhere."""
    footer = varint(0) + varint(0) + varint(begin) + varint(size)
    return data[:-48] + footer.ljust(40, b"\0") + data[-8:]


def tricks() -> dict[str, bytes]:
    """Name of the trick -> index."""
    good = table([FIRST, GOOD])
    last = block([FIRST, GOOD])
    trailer = b"\0" + masked(last + b"\0")
    places = varint(0) + varint(len(last))
    bomb = varint(0) + varint(1024) + varint(0) + b"k" * 1024
    bomb += b"".join(varint(1024) + varint(1) + varint(0) + b"k" for _ in range(9))
    ends = (1).to_bytes(4, "little")
    return {
        "no header": table([GOOD]),
        "an empty table": table([]),
        "no files": rows(GOOD[1], first=header(0)),
        "four billion files": rows(GOOD[1], first=header(2**32)),
        "two files of which one is there": rows(GOOD[1], first=header(2)),
        "another byte order": rows(GOOD[1], first=header(endianness=1)),
        "a format of the future": rows(GOOD[1], first=header(needs=2)),
        "a header that is no message": rows(GOOD[1], first=b"\xff" * 11),
        "a header that is cut off": rows(GOOD[1], first=b"\x1a\x7f"),
        "2^62 elements": rows(entry(DATA, (2**62,))),
        "a size that wraps around": rows(entry(DATA, (2**32, 2**32), size=0)),
        "a size that wraps to the truth": rows(entry(DATA, (2**61, 8, 6))),
        "a negative size": rows(entry(DATA, (-2, -3))),
        "a shape that is too small": rows(entry(DATA, (2, 2))),
        "more bytes than the shape": rows(entry(DATA, (2, 3), size=25)),
        "100,000 sizes of one": rows(entry(DATA, [1] * 100_000 + [6])),
        "an unknown rank": rows(entry(DATA, (2, 3)) + field(2, field(3, 1))),
        "an unknown type": rows(entry(DATA, (2, 3), kind=99)),
        "no type": rows(entry(DATA, (2, 3), kind=0)),
        "text": rows(entry(DATA, (2, 3), kind=7)),
        "a resource": rows(entry(DATA, (2, 3), kind=20)),
        "a variant": rows(entry(DATA, (2, 3), kind=21)),
        "a file that is not there": rows(entry(DATA, (2, 3), shard=1)),
        "a file of a negative number": rows(entry(DATA, (2, 3), shard=2**64 - 1)),
        "a beginning behind the end": rows(entry(DATA, (2, 3), begin=24)),
        "a beginning of 2^63": rows(entry(DATA, (2, 3), begin=2**63)),
        "an end outside of the file": rows(entry(DATA, (2, 3), begin=4)),
        "slices": rows(entry(DATA, (2, 3), more=field(7, field(1, b"")))),
        "another checksum": rows(entry(b"other", (2, 3), size=24)),
        "data on top of each other": table(
            [FIRST, (b"a/kernel", entry(DATA[:16], (2, 2))), (b"b/kernel", entry(DATA[8:], (2, 2), begin=8))]
        ),
        "a name twice": table([FIRST, GOOD, GOOD]),
        "a name twice in two blocks": table([FIRST, GOOD, GOOD], size=2),
        "names in another order": table([FIRST, GOOD, (b"a/kernel", GOOD[1])]),
        "a name that is not UTF-8": rows(GOOD[1], key=b"\xff\xfe"),
        "a name of 2,000 bytes": rows(GOOD[1], key=b"w" * 2000),
        "names that grow": index([(b"z", bomb + bytes(4) + ends)]),
        "a key that shares with nothing": index(
            [(b"z", varint(3) + varint(1) + varint(0) + b"a" + bytes(4) + ends)]
        ),
        "a value that is too long": index(
            [(b"z", varint(0) + varint(1) + varint(99) + b"a" + bytes(4) + ends)]
        ),
        "a number without end": index([(b"z", b"\xff" * 12 + bytes(4) + ends)]),
        "more restarts than bytes": index([(b"z", b"a" * 8 + b"\xff" * 4)]),
        "an empty block": index([(b"z", b"")]),
        "a compressed block": last + b"\1" + masked(last + b"\1") + good[len(last) + 5 :],
        "a block with another checksum": last + b"\0" + bytes(4) + good[len(last) + 5 :],
        "no magic number": good[:-8] + bytes(8),
        "a footer alone": good[-48:],
        "a place outside": rewired(good, len(good), 10),
        "a place of 2^64": rewired(good, 2**64 - 1, 2**64 - 1),
        "a place that wraps around": rewired(good, 2**64 - 8, 16),
        "blocks on top of each other": _twice(last + trailer, places),
        "nothing": b"",
        "zeros": bytes(4096),
        "17 MB": bytes(17 << 20),
    }


def _twice(data: bytes, place: bytes) -> bytes:
    """A table that names one block a thousand times."""
    body = block([(b"%04d" % i, place) for i in range(1000)])
    footer = varint(0) + varint(0) + varint(len(data)) + varint(len(body))
    whole = data + body + b"\0" + masked(body + b"\0")
    return whole + footer.ljust(40, b"\0") + table([FIRST])[-8:]


TRICKS = tricks()


def placed(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def test_without_tricks_the_checkpoint_is_read(tmp_path: Path) -> None:
    weights = open_weights(placed(tmp_path, {INDEX: table([FIRST, GOOD]), FILE: DATA}))
    assert torch.equal(weights["w.weight"], torch.arange(6.0).view(2, 3).T)
    assert crc(b"123456789") == 0xE3069283


@pytest.mark.parametrize("case", TRICKS)
def test_an_index_with_a_trick_is_refused(case: str, tmp_path: Path, refused: Judge) -> None:
    placed(tmp_path, {INDEX: TRICKS[case], FILE: DATA})
    refused(
        lambda: [open_bundle(tmp_path / INDEX).read(name) for name in open_bundle(tmp_path / INDEX).shapes]
    )


@pytest.fixture
def good(tmp_path: Path) -> dict[str, bytes]:
    """The files of a checkpoint of forty variables in several blocks."""
    write(tmp_path / "good", {f"layers/{i}/kernel": torch.full((5, 3), float(i)) for i in range(40)})
    return {name: (tmp_path / "good" / name).read_bytes() for name in (INDEX, FILE)}


@pytest.mark.parametrize("percent", range(0, 100, 5))
@pytest.mark.parametrize("name", [INDEX, FILE])
def test_a_checkpoint_that_was_cut_off_is_refused(
    name: str, percent: int, good: dict[str, bytes], tmp_path: Path, refused: Judge
) -> None:
    placed(tmp_path, good | {name: good[name][: len(good[name]) * percent // 100]})
    refused(lambda: dict(open_weights(tmp_path)))


@pytest.mark.parametrize("name", [INDEX, FILE])
def test_a_changed_byte_is_refused_or_changes_nothing(
    name: str, good: dict[str, bytes], tmp_path: Path
) -> None:
    placed(tmp_path, good)
    before = {key: tensor.clone() for key, tensor in open_weights(tmp_path).items()}
    silent = 0
    for place in range(0, len(good[name]), max(1, len(good[name]) // 200)):
        changed = bytearray(good[name])
        changed[place] ^= 1 << place % 8
        (tmp_path / name).write_bytes(changed)
        try:
            after = dict(open_weights(tmp_path))
        except CheckpointError:
            continue
        silent += 1
        assert after.keys() == before.keys()
        assert all(torch.equal(after[key], before[key]) for key in before)
    assert silent < 10  # the padding of the footer, and the empty block that nobody reads


@pytest.mark.parametrize("name", [INDEX, FILE])
def test_neither_links_out_of_the_folder_nor_pipes_are_followed(
    name: str, good: dict[str, bytes], tmp_path: Path, refused: Judge
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    placed(inner, good)
    (inner / name).unlink()
    (inner / name).symlink_to(tmp_path / "good" / name)
    refused(lambda: dict(open_weights(inner)))
    (inner / name).unlink()
    os.mkfifo(inner / name)
    refused(lambda: dict(open_weights(inner)))
