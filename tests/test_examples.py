"""The documents of examples/, the questions about them, and what the README shows of both."""

import importlib.util
import io
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from longspan.hub import builtin_folder
from longspan.search.index import Index
from longspan.text.documents import Document, read
from unit.search.folders import tiny

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = {path.name: read(path) for path in sorted((ROOT / "examples" / "documents").iterdir())}
QUESTIONS = json.loads((ROOT / "examples" / "questions.json").read_text("utf-8"))
FORMATS = {"text", "markdown", "html", "pdf", "docx"}


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flat(document: Document) -> str:
    return " ".join(document.text.split())


def test_the_examples_are_small_enough_for_a_repository() -> None:
    assert sum(path.stat().st_size for path in (ROOT / "examples").rglob("*") if path.is_file()) <= 3_000_000


def test_every_format_is_there_long_and_read_without_loss() -> None:
    assert {document.kind for document in DOCUMENTS.values()} == FORMATS
    for document in DOCUMENTS.values():
        assert len(document) > 15_000
        assert document.replaced == 0


def test_every_document_is_named_with_its_licence() -> None:
    page = (ROOT / "examples" / "README.md").read_text("utf-8")
    assert set(re.findall(r"\]\(documents/([^)]+)\)", page)) == set(DOCUMENTS)


def test_the_pages_of_the_pdf_are_those_printed_on_them() -> None:
    book = DOCUMENTS["alice-in-wonderland.pdf"]
    ends = [*book.pages[1:], len(book)]
    feet = [book.text[start:end].split()[-1] for start, end in zip(book.pages, ends, strict=True)]
    assert feet[1:] == [str(page) for page in range(2, 82)]


@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked["file"])
def test_an_answer_stands_once_and_deep_inside_its_document(asked: dict[str, str]) -> None:
    holding = {name: flat(document).count(asked["answer"]) for name, document in DOCUMENTS.items()}
    assert {name: count for name, count in holding.items() if count} == {asked["file"]: 1}
    assert flat(DOCUMENTS[asked["file"]]).index(asked["answer"]) > 8 * 512  # a token has 4 characters or so


def test_one_question_is_answered_by_the_pdf() -> None:
    assert len(QUESTIONS) == 3
    assert [asked["file"] for asked in QUESTIONS if asked["file"].endswith(".pdf")]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """What the demo finds with a tiny model in the two shortest documents, and what it says of that."""
    demo, folder, said = script("examples/demo.py"), tmp_path_factory.mktemp("demo"), io.StringIO()
    short = sorted(demo.FILES, key=lambda path: len(DOCUMENTS[path.name]))[:2]
    vars(demo).update(FILES=short)
    with Index.open(folder, tiny()) as index, redirect_stdout(said):
        index.add(short)
        found: dict[str, Any] = demo.compared(index)
        demo.report(found)
    return found, said.getvalue()


def test_the_demo_compares_whole_documents_with_their_starts(told: tuple[dict[str, Any], str]) -> None:
    found, said = told
    assert all(document["tokens"] > 512 for document in found["documents"])
    assert all(answer["start"] < 4096 for answer in found["first"])
    for asked, whole in zip(QUESTIONS, found["whole"], strict=True):
        assert asked["question"] in said
        assert whole["place"] in said


def test_the_picture_is_drawn_from_the_facts_alone(told: tuple[dict[str, Any], str]) -> None:
    picture, (found, _) = script("docs/pictures/demo.py"), told
    drawing = picture.drawn(found)
    assert drawing == picture.drawn(found)
    words = "".join(ET.fromstring(drawing).itertext())
    assert all(asked["question"] in words for asked in QUESTIONS)
    assert all(document["file"] in words for document in found["documents"])


def test_the_readme_shows_what_the_demo_asks_and_finds() -> None:
    shown = " ".join(README.split("<!-- demo: begin -->")[1].split("<!-- demo: end -->")[0].split())
    drawn = (ROOT / "docs" / "pictures" / "demo.svg").read_text("utf-8")
    for asked in QUESTIONS:
        assert f'$ longspan search "{asked["question"]}"' in shown
        assert asked["question"] in drawn
    assert "Answers found: 3 of 3 in whole documents" in shown


def test_of_each_passage_the_readme_shows_the_answer() -> None:
    hit = "$ longspan search {}\n1. a.txt:7  (9 %)\n   Title › 1 Part\n   {}\n\n"
    unsure = "$ longspan search c\nno good match for 'c'; the best tries:\n\n1. a.txt:9  (1 %)\n   Words.\n\n"
    hits = hit.format("a", "Is. »It is so.« Not.") + hit.format("b", "»No.« Yes.")
    shown = f"$ longspan pull\nx\n\n{hits}{unsure}"
    short = script("docs/pictures/demo.py").shortened(shown, ["is so", "Yes"])
    assert [line.strip() for line in short.splitlines() if line.startswith("   …")] == [
        "… »It is so.« …",
        "… Yes …",
    ]
    assert short.count("Title › 1 Part") == 2
    assert "pull" not in short
    assert short.endswith("the best tries:\n\n1. a.txt:9  (1 %)\n   Words.")


def test_output_goes_between_the_marks_of_a_page() -> None:
    picture = script("docs/pictures/demo.py")
    page = "a\n<!-- demo: begin -->old<!-- demo: end -->\nb\n"
    filled = picture.filled(page, f"{Path.home()}/x\n\n" + "word " * 40)
    assert "~/x\n\nword" in filled
    assert "old" not in filled
    assert picture.filled(filled, f"{Path.home()}/x\n\n" + "word " * 40) == filled
    with pytest.raises(SystemExit, match="once"):
        picture.filled("nothing", "x")


@pytest.mark.slow
def test_the_demo_finds_every_answer() -> None:
    if builtin_folder() is None:
        pytest.skip("the built-in model is not in the cache: `longspan pull` fetches it")
    done = subprocess.run([sys.executable, ROOT / "examples" / "demo.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Answers found: 3 of 3 in whole documents" in done.stdout
