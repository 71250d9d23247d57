"""JSON that no program would write is not read."""

from collections.abc import Callable
from pathlib import Path

import pytest

from longspan.formats.files import read_json

TEXTS = {
    "nothing": b"",
    "a space": b" ",
    "a list": b"[1]",
    "a number": b"1",
    "a word": b'"config"',
    "no JSON": b"{'a': 1}",
    "Python": b"__import__('os').system('true')",
    "two objects": b"{}{}",
    "a key twice": b'{"a": 1, "a": 2}',
    "a key twice further down": b'{"a": [{"b": 1, "b": 1}]}',
    "a key twice, escaped": b'{"a": 1, "\\u0061": 2}',
    "NaN": b'{"a": NaN}',
    "Infinity": b'{"a": Infinity}',
    "minus Infinity": b'{"a": -Infinity}',
    "a number that becomes infinite": b'{"a": 1e999}',
    "a number of 100,000 digits": b'{"a": ' + b"9" * 100_000 + b"}",
    "a number of 41 digits": b'{"a": ' + b"9" * 41 + b"}",
    "lists without end": b'{"a": ' + b"[" * 100_000,
    "a hundred lists": b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}",
    "objects without end": b'{"a": ' * 100_000,
    "a hundred objects": b'{"a": ' * 100 + b"1" + b"}" * 100,
    "Latin-1": b'{"a": "\xe9"}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "an overlong slash": b'{"a": "\xc0\xaf"}',
    "a control character": b'{"a": "\x00"}',
    "9 MB": b'{"a": "' + b"x" * (9 << 20) + b'"}',
}


@pytest.mark.parametrize("case", TEXTS)
def test_a_text_with_a_trick_is_refused(
    case: str, tmp_path: Path, refused: Callable[[Callable[[], object]], str]
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(TEXTS[case])
    assert "config.json" in refused(lambda: read_json(path))


def test_a_file_of_a_billion_bytes_is_not_read(
    tmp_path: Path, refused: Callable[[Callable[[], object]], str]
) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(10**9)
    assert "larger than 8,388,608 bytes" in refused(lambda: read_json(path))
