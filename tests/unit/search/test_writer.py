"""Writing an index: files are read ahead in other threads, which end with the run."""

import time
from pathlib import Path

import pytest

from longspan.search import writer
from longspan.search.index import Index
from longspan.text.documents import Document
from longspan.text.headings import headings
from unit.search.folders import written


def test_a_run_that_is_stopped_reads_no_more_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = written(tmp_path / "docs", {f"{number}.txt": f"river {number}" for number in range(60)})
    begun: list[Path | None] = []
    cut = writer._cut

    def slow(document: Document) -> writer._Cut:
        begun.append(document.source)
        time.sleep(0.02)
        return cut(document)

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "_cut", slow)
    monkeypatch.setattr(writer.Writer, "_commit", stop)
    monkeypatch.setattr(writer, "_grouped", lambda documents, size: ([each] for each in documents))
    index = Index.open(tmp_path / "index")
    with pytest.raises(KeyboardInterrupt) as stopped:
        index.add(docs, vectors=False, progress=False)
    count = len(begun)
    time.sleep(0.1)
    assert len(begun) == count < 60
    assert stopped.traceback  # which holds on to the run


def test_lines_and_sections_are_those_of_the_document() -> None:
    body = "Nothing much is said in this sentence.\n" * 40
    text = f"Before.\n\n1. Fees\n\n{body}\n1.1 Late Fees\n\n{body}\n2. Term\n\n{body}"
    document = Document(text, headings=headings(text))
    rows = writer._rows(document)
    assert "".join(row.text for row in rows) == text
    assert [row.line for row in rows] == [document.line_of(row.start) for row in rows]
    assert [row.section for row in rows] == ["\n".join(document.section_of(row.start)) for row in rows]
    assert {row.section for row in rows} == {"", "1. Fees", "1. Fees\n1.1 Late Fees", "2. Term"}
