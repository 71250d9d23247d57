"""The documentation site: complete, typed, without dead links, and read without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import longspan
import public_api

ROOT = Path(__file__).parents[2]
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^\"'> ]*"
    r"|<link\b[^>]*\bhref=[\"']?(?:https?:)?//[^\"'> ]*"
    r"|url\([\"']?(?:https?:)?//[^)]*|@import[^;]*//[^;]*"
)


def build(source: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """What `make docs` does."""
    options = ("-q", "-E", "-W", "--keep-going", "-c", str(ROOT / "docs/_site"), "-d", str(out / "doctrees"))
    command = [sys.executable, "-m", "sphinx", *options, str(source), str(out / "site")]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    result = build(ROOT / "docs", tmp_path)
    assert result.returncode == 0, result.stderr
    pages = [path for path in (tmp_path / "site").rglob("*") if path.suffix in {".html", ".css"}]
    assert len(pages) > 40
    assert not [f"{path.name}: {load}" for path in pages for load in LOADED.findall(path.read_text())]
    reference = "".join(path.read_text() for path in pages if path.parent.name == "reference")
    assert not [path for path in public_api.face() if f'id="{path}"' not in reference]


@pytest.mark.slow
def test_a_dead_link_and_a_name_without_a_page_fail_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Title\n\n[nowhere](missing.md), [neither](#missing)\n")
    result = build(tmp_path / "docs", tmp_path)
    assert result.returncode != 0
    for message in ("'missing.md'", "'missing'", "longspan.load is in no page of the reference"):
        assert message in result.stderr


def test_loads_from_elsewhere_are_noticed() -> None:
    for load in (
        '<script src="https://a.b/c.js">',
        '<link rel="stylesheet" href="//a.b/c.css">',
        "@import 'https://a.b/c.css';",
        "src: url(https://a.b/c.woff2)",
    ):
        assert LOADED.search(load)
    assert not LOADED.search('<a href="https://a.b">, <script src="../c.js">, url(data:image/svg+xml;utf8,x)')


def test_what_is_public_is_documented_and_typed() -> None:
    assert not [problem for entry in public_api.face().items() for problem in public_api.problems(*entry)]


def test_what_lacks_a_docstring_or_a_type_is_told() -> None:
    class Bare:
        def verb(self, text, *, top: int = 1): ...  # type: ignore[no-untyped-def]

    Bare.verb.__module__ = "longspan"
    assert list(public_api.problems("ls.Bare", Bare)) == [
        "ls.Bare has no docstring",
        "ls.Bare.verb has no docstring",
        "ls.Bare.verb: the parameter text has no type",
        "ls.Bare.verb has no type of its result",
    ]


def test_what_a_base_describes_is_not_described_again() -> None:
    assert "count" in public_api.members(longspan.patterns.Pattern)
    assert set(public_api.members(longspan.patterns.RandomBlocks)) == {"picks"}


def test_results_are_followed_through_fields_and_methods() -> None:
    names = {kind.__name__ for kind in public_api.results([longspan.Index, longspan.attention_weights])}
    assert {"Hits", "Hit", "Weights"} <= names


def test_what_examples_import_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nfrom longspan.patterns import (\n    Full,\n    Window,\n)\n```\n")
    assert set(public_api.imported([page])) == {"longspan.patterns.Full", "longspan.patterns.Window"}
