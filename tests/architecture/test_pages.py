"""Every block of Python in the README and the docs runs, with tiny stand-ins for models that are downloaded.

On the page about extending Longspan, whole files and the lines below others are run by tests/extension, in a
copy of the sources; what is left there is only checked for names that nothing defines. Blocks of other
languages (`console`, `cpp`, `cmake`, `json`) and unmarked ones (commands and their output) are not run.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from unit.search.folders import filled, tiny
from unit.tasks.tiny import reader
from unit.text import files
from unit.text.test_ocr import SPY, install

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(?:python|py)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
APPLIED = re.compile(r"(?:^|\n)(?:`[\w./]+`|In `[\w./]+`, below `[^`]+`):\n\n$")
"""What stands before a block that tests/extension writes into a file."""


def blocks(page: Path) -> list[tuple[str, str]]:
    """The blocks of a page, each by its line, that no other test runs."""
    text = page.read_text("utf-8")
    return [
        (f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}", match[2])
        for match in BLOCK.finditer(text)
        if not APPLIED.search(text[: match.start()])
    ]


EXTENDING = ROOT / "docs/how-to/extend.md"
RUN = [block for page in PAGES if page != EXTENDING for block in blocks(page)]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models as small as can be: the built-in one, one to be lengthened, and two that rank."""
    folder = tmp_path_factory.mktemp("models")
    tiny().save(folder / "default")
    reader("bert", "encode").save(folder / "roberta-base")
    reader("bert", "classify", labels=1).save(folder / "bge-reranker-v2-m3")
    reader("bert", "late-interaction").save(folder / "GTE-ModernColBERT-v1")
    return folder


@pytest.fixture
def _stand_ins(models: Path, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that holds what the pages name, with the models in place of those that are downloaded."""
    for name in ("FacebookAI/roberta-base", "BAAI/bge-reranker-v2-m3", "lightonai/GTE-ModernColBERT-v1"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).symlink_to(models / Path(name).name)
    (tmp_path / "examples").mkdir()
    filled(tmp_path / "examples/documents")
    (tmp_path / "README.md").symlink_to(ROOT / "README.md")
    book = "examples/documents/alice-in-wonderland.pdf"
    if place.startswith("docs/how-to/documents.md"):
        (tmp_path / book).symlink_to(ROOT / book)
    filled(tmp_path / "contracts")
    filled(tmp_path / "scans")
    (tmp_path / "scan.pdf").write_bytes(files.pdf(["text"]))
    (tmp_path / "photo.jpg").write_bytes(b"\xff\xd8\xff\xe0" + b"\0" * 2000)
    install(tmp_path, monkeypatch, SPY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LONGSPAN_CACHE", str(tmp_path / "cache"))
    for name in ("longspan.builtin.ensure", "longspan.loading.ensure"):
        monkeypatch.setattr(name, lambda name, local_files_only=False: None)
    monkeypatch.setattr("longspan.hub.builtin_folder", lambda: models / "default")


@pytest.mark.usefixtures("_stand_ins")
@pytest.mark.parametrize(("place", "code"), RUN, ids=[place for place, _ in RUN])
def test_a_block_runs_on_its_own(place: str, code: str) -> None:
    exec(compile(code, place, "exec"), {"__name__": "example"})


@pytest.mark.parametrize(("place", "code"), blocks(EXTENDING), ids=lambda value: value[:40])
def test_a_block_that_cannot_be_run_imports_what_it_uses(place: str, code: str) -> None:
    assert undefined(code) == ""


def undefined(code: str) -> str:
    """What ruff says of names that nothing defines."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", "--select", "F821", "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True).stdout


def test_a_missing_import_is_noticed() -> None:
    with pytest.raises(NameError):
        exec(compile('longspan.load("default")', "page", "exec"), {"__name__": "example"})
    assert "longspan" in undefined('longspan.load("default")')


def test_the_pages_have_blocks() -> None:
    assert {place.partition(":")[0] for place, _ in RUN} >= {
        "README.md",
        "docs/architecture.md",
        "docs/how-to/documents.md",
        "docs/how-to/inspect.md",
        "docs/how-to/lengthen.md",
        "docs/how-to/search.md",
        "docs/how-to/transformers.md",
        "docs/index.md",
        "docs/models.md",
        "docs/patterns.md",
    }
