"""Text in old encodings is read as it was written, valid UTF-8 as UTF-8, and binary files stay binary."""

import random
import zlib
from collections.abc import Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.text.documents import read
from longspan.text.files import encoding
from longspan.text.files.plain import decode, looks_binary
from longspan.text.walk import walk

TEXTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "German": (
        "Der Vertrag kann mit einer Frist von drei Monaten gekündigt werden. Für Schäden haftet der Käufer, "
        "größere Änderungen bedürfen der Schriftform.",
        ("latin-1", "cp1252", "mac_roman", "cp850"),
    ),
    "French": ("Le contrat peut être résilié à tout moment ; l'œuvre coûte 5 €.", ("cp1252", "iso8859-15")),
    "English": ("The “Effective Date” – see §3 – is the buyer’s; it costs £5.\n" * 9, ("cp1252",)),
    "Polish": (
        "Umowa może zostać wypowiedziana w każdej chwili. Płatności należy uregulować wcześniej, gdyż "
        "później będą naliczane odsetki.",
        ("cp1250", "iso8859-2"),
    ),
    "Russian": (
        "Договор может быть расторгнут в любое время по желанию сторон.",
        ("cp1251", "koi8-r", "cp866"),
    ),
    "Greek": ("Η σύμβαση μπορεί να καταγγελθεί οποτεδήποτε. Ο αγοραστής ευθύνεται.", ("cp1253",)),
    "Japanese": ("契約はいつでも解除することができます。買主は責任を負います。", ("shift_jis", "euc-jp")),
    "Chinese": ("合同可以随时解除。买方对给第三方造成的损害承担责任。", ("gbk", "gb18030")),
    "Korean": ("계약은 언제든지 해지될 수 있습니다. 구매자는 손해에 대해 책임을 집니다.", ("cp949",)),
}
CASES = [(name, codec) for name, (_, codecs) in TEXTS.items() for codec in codecs]


@pytest.mark.parametrize(("name", "codec"), CASES)
def test_text_in_an_old_encoding_is_read_as_it_was_written(tmp_path: Path, name: str, codec: str) -> None:
    text = TEXTS[name][0]
    (tmp_path / "a.txt").write_bytes(text.encode(codec))
    assert list(walk([tmp_path])) == [tmp_path / "a.txt"]
    document = read(tmp_path / "a.txt")
    assert (document.text, document.replaced, document.gap) == (text, 0, "")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", TEXTS)
def test_utf16_needs_no_mark(tmp_path: Path, name: str, codec: str) -> None:
    text = TEXTS[name][0] + "\n"
    (tmp_path / "a.txt").write_bytes(text.encode(codec))
    assert list(walk([tmp_path])) == [tmp_path / "a.txt"]
    assert read(tmp_path / "a.txt").text == text


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff")))
def test_valid_utf8_always_wins(text: str) -> None:
    assert decode(text.encode()) == (text, 0)
    assert decode(text.encode(), "cp1252") == (text, 0)


@pytest.mark.parametrize("text", ["gekündigt", "café au lait", "naïve", "£5 – net", "Müller & Söhne"])
def test_a_few_words_are_taken_for_western_ones(text: str) -> None:
    assert decode(text.encode("cp1252")) == (text, 0)


@pytest.mark.parametrize("codec", ["utf-8", "latin-1"])
def test_a_stray_nul_makes_no_utf16(codec: str) -> None:
    text = "Der Vertrag ist gekündigt. \0 Die Übergabe und Größeres folgen, später auch Weiteres noch."
    assert decode(text.encode(codec)) == (text, 0)


def test_a_damaged_byte_does_not_change_the_encoding_of_all_others() -> None:
    text = "Größe, Übergabe, schön und gekündigt: "
    data = text.encode() + b"\xff" + text.encode()
    assert decode(data) == (f"{text}\ufffd{text}", 1)


def test_only_a_sample_is_looked_at_and_the_same_one_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import chardet

    sizes: list[int] = []
    detect = chardet.detect

    def measured(data: bytes, **options: Any) -> object:
        sizes.append(len(data))
        return detect(data, **options)

    monkeypatch.setattr(chardet, "detect", measured)
    data = b"plain words " * 100_000 + (TEXTS["German"][0] * 20_000).encode("latin-1")
    first, second = decode(data), decode(data)
    assert first == second == (data.decode("latin-1"), 0)
    assert len(sizes) == 2
    assert max(sizes) <= encoding.BEFORE + encoding.SAMPLE


def test_binary_files_are_still_binary() -> None:
    noise = random.Random(7)
    for size in (64, 1000, 8192):
        data = noise.randbytes(size)
        assert looks_binary(data)
        assert looks_binary(zlib.compress(data))
        assert looks_binary(data.replace(b"\0", b"\1"))
    assert looks_binary(b"\x7fELF\x02\x01\x01\x00" + bytes(56))
    assert looks_binary(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\1\0\0\0\1\0")


@pytest.mark.parametrize(
    ("head", "codec"),
    [("<meta charset=windows-1251>", "cp1251"), ("", "cp1251"), ('<meta charset="cp1252">', "utf-8")],
)
def test_a_page_is_read_as_it_says_unless_it_is_utf8(tmp_path: Path, head: str, codec: str) -> None:
    text = TEXTS["Russian"][0]
    (tmp_path / "a.html").write_bytes(f"<html>{head}<p>{text}".encode(codec))
    document = read(tmp_path / "a.html")
    assert (document.text, document.replaced) == (text, 0)


def test_a_mail_that_names_no_encoding_is_looked_at(tmp_path: Path) -> None:
    text = TEXTS["German"][0]
    mail = f"Subject: Kündigung für Müller\nContent-Type: text/plain\n\n{text}\n"
    (tmp_path / "a.eml").write_bytes(mail.encode("latin-1"))
    document = read(tmp_path / "a.eml")
    assert document.text == f"Subject: Kündigung für Müller\n\n{text}"
    assert document.title == "Kündigung für Müller"
    named = EmailMessage()
    named.set_content(TEXTS["Russian"][0], charset="koi8-r", cte="base64")
    (tmp_path / "b.eml").write_bytes(named.as_bytes())
    assert TEXTS["Russian"][0] in read(tmp_path / "b.eml").text


def test_the_bytes_of_rich_text_are_those_of_its_fonts(tmp_path: Path) -> None:
    def escaped(text: str, codec: str) -> str:
        return "".join(f"\\'{byte:02x}" for byte in text.encode(codec))

    fonts = r"{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset204 Arial Cyr;}{\f2\fcharset128 Mincho;}}"
    body = rf"\f0 {escaped('Grüße ', 'cp1252')}{{\f1 {escaped('Привет', 'cp1251')}}}"
    body += rf" {escaped('é', 'cp1252')} \f2 {escaped('契約', 'cp932')}\plain  {escaped('Ł', 'cp1250')}"
    (tmp_path / "a.rtf").write_text(rf"{{\rtf1\ansi\ansicpg1250{fonts}{body}}}")
    document = read(tmp_path / "a.rtf")
    assert (document.text, document.replaced) == ("Grüße Привет é 契約 Ł", 0)
    (tmp_path / "b.rtf").write_text(r"{\rtf1\ansi\ansicpg932 x\'81}")
    assert read(tmp_path / "b.rtf").gap == "holds 1 character that could not be decoded"
