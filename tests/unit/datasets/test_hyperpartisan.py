"""Articles and their labels stand in two files of XML, which is read as data."""

from pathlib import Path

import pytest

from longspan.datasets import Dataset, read_dataset
from longspan.datasets.forms import TEXTS
from longspan.errors import LongspanError

ARTICLES = """<?xml version="1.0"?><articles>
<article id="1" title="One">Before. <p>A &amp; <a href="x">B</a></p><p> so
on </p></article>
<article id="2" title="Two"><p>C</p></article></articles>"""
TRUTH = '<articles><article id="2" hyperpartisan="false"/><article id="1" hyperpartisan="true"/></articles>'


def read(folder: Path, content: str = ARTICLES, truth: str = TRUTH) -> Dataset:
    (folder / "articles-training-x.xml").write_text(content)
    (folder / "ground-truth-training-x.xml").write_text(truth)
    return read_dataset(folder, TEXTS)


def test_paragraphs_are_lines_and_labels_are_found_by_id(tmp_path: Path) -> None:
    dataset = read(tmp_path)
    assert list(dataset.inputs[0]) == ["Before.\nA & B\nso on", "C"]
    assert (list(dataset.labels), dataset.classes) == (["true", "false"], ("false", "true"))
    assert list(dataset.column("title")) == ["One", "Two"]
    assert [place.line for place in dataset.places] == [2, 4]


BOMB = '<!DOCTYPE a [<!ENTITY b "x">]><articles><article id="1">&b;</article></articles>'


@pytest.mark.parametrize(
    ("content", "truth", "reason"),
    [
        (ARTICLES, TRUTH.replace('"2"', '"3"'), "line 4: `label` must be given"),
        (ARTICLES.replace("C", ""), TRUTH, "line 4: `text` must be a text with something in it"),
        (ARTICLES[:-20], TRUTH, "it is not XML"),
        ("text", TRUTH, "it is not XML"),
        (ARTICLES, TRUTH[:30], "ground-truth-training-x.xml` cannot be read: it is not XML"),
        (BOMB, TRUTH, "line 1 declares an entity"),
        ("<articles/>", TRUTH, "it holds no examples"),
    ],
)
def test_bad_files_are_told(content: str, truth: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(LongspanError) as error:
        read(tmp_path, content, truth)
    assert reason in str(error.value)


def test_other_xml_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<a/>")
    with pytest.raises(LongspanError, match=r"Only Hyperpartisan's XML files are read"):
        read_dataset(tmp_path / "a.xml", TEXTS)
