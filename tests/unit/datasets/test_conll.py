"""Files of tokens: tagged as in CoNLL-2003, with coreference as in CoNLL-2012, read and written back."""

from pathlib import Path

import pytest

from longspan.datasets import read_dataset
from longspan.datasets.conll12 import read_conll12, write_conll12
from longspan.datasets.forms import CLUSTERS, TAGS
from longspan.errors import LongspanError

TAGGED = (
    "-DOCSTART- -X- O O\n\nAnna NNP I-NP B-PER\nin IN I-PP O\n\nNew NNP I-NP B-LOC\nYork NNP I-NP I-LOC\n\n"
)


def file(folder: Path, content: str, name: str = "train.txt") -> Path:
    (folder / name).write_text(content)
    return folder / name


def test_a_document_is_one_example_and_its_sentences_are_known(tmp_path: Path) -> None:
    dataset = read_dataset(file(tmp_path, TAGGED + TAGGED.replace("Anna", "Bob")), TAGS)
    assert list(dataset.inputs[0]) == ["Anna in New York", "Bob in New York"]
    assert dataset.labels[0] == [(0, 4, "PER"), (8, 16, "LOC")]
    assert dataset.classes == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert dataset.column("sentence_ends")[0] == [2, 4]
    assert [place.line for place in dataset.places] == [3, 11]


def test_without_documents_sentences_are_examples(tmp_path: Path) -> None:
    dataset = read_dataset(file(tmp_path, "Anna\tB-PER\n\n\nin\tO\nRome\tS-LOC\n"), TAGS)
    assert list(dataset.inputs[0]) == ["Anna", "in Rome"]
    assert list(dataset.labels) == [[(0, 4, "PER")], [(3, 7, "LOC")]]


def test_tags_of_the_older_kind_begin_with_i(tmp_path: Path) -> None:
    rows = zip("abcde", ("I-LOC", "I-LOC", "B-LOC", "I-PER", "O"), strict=True)
    dataset = read_dataset(file(tmp_path, "".join(f"{word} {tag}\n" for word, tag in rows)), TAGS)
    assert dataset.labels[0] == [(0, 3, "LOC"), (4, 5, "LOC"), (6, 7, "PER")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Anna B-PER\nin\n", "line 2 has 1 columns, where others have 2"),
        ("Anna\n", "line 1 has no tag behind its token"),
        ("Anna B-PER\n\nin Q-PER\n", "line 3: `tags` must be O, or a name"),
        ("\n", "it holds no examples"),
    ],
)
def test_bad_lines_of_tags_are_told(content: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(LongspanError) as error:
        read_dataset(file(tmp_path, content), TAGS)
    assert reason in str(error.value)


def coreference(*marks: str, end: str = "#end document\n") -> str:
    words = ("Anna", "and", "her", "friend", "|", "Bob", "laugh")
    rows = [f"bn/x\t1\t{i}\t{word}\t-" for i, word in enumerate(words)]
    lines = [
        row + "\t-" * 4 + f"\tSpeaker{i // 5}\t*\t{mark}\n"
        for i, (row, mark) in enumerate(zip(rows, marks, strict=True))
    ]
    lines.insert(5, "\n")
    return "#begin document (bn/x); part 001\n" + "".join(lines) + "\n" + end


MARKS = ("(0)", "-", "(2|(0)", "2)", "-", "(2)", "-")
WRITTEN = ("(0)", "-", "(1|(0)", "1)", "-", "(1)", "-")


def test_coreference_becomes_spans_of_the_text(tmp_path: Path) -> None:
    dataset = read_dataset(file(tmp_path, coreference(*MARKS), "a.v4_gold_conll"), CLUSTERS)
    text = str(dataset.inputs[0][0])
    assert text == "Anna and her friend |\nBob laugh"
    assert isinstance(dataset.labels[0], list)
    found = [[text[start:end] for start, end in cluster] for cluster in dataset.labels[0]]
    assert found == [["Anna", "her"], ["her friend", "Bob"]]
    assert dataset.column("speakers")[0] == [(0, 21, "Speaker0"), (22, 31, "Speaker1")]
    assert list(dataset.ids) == ["bn/x, part 001"]


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    first = list(read_conll12(file(tmp_path, coreference(*MARKS))))
    write_conll12(tmp_path / "b.conll", first)
    assert (tmp_path / "b.conll").read_text() == coreference(*WRITTEN)
    second = list(read_conll12(tmp_path / "b.conll"))
    assert [one.clusters for one in second] == [one.clusters for one in first]
    assert [one.sentences[0][0][:-1] for one in second] == [one.sentences[0][0][:-1] for one in first]


def test_new_clusters_are_written_for_the_words_that_spans_touch(tmp_path: Path) -> None:
    (document,) = read_conll12(file(tmp_path, coreference(*MARKS)))
    write_conll12(tmp_path / "b.conll", [document.with_clusters([[(9, 19), (22, 25)], [(1, 3)], []])])
    assert (tmp_path / "b.conll").read_text() == coreference("(1)", "-", "(0", "0)", "-", "(0)", "-")


def test_mentions_inside_of_others_are_closed_first(tmp_path: Path) -> None:
    marks = ("(0|(1", "(0", "1)", "-", "0)", "-", "0)")
    (document,) = read_conll12(file(tmp_path, coreference(*marks)))
    assert document.clusters == [[(0, 2)], [(0, 6), (1, 4)]]
    write_conll12(tmp_path / "b.conll", [document])
    (again,) = read_conll12(tmp_path / "b.conll")
    assert again.clusters == document.clusters


NONE = ("-",) * 7


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (coreference("(0", *NONE[1:]), "line 2: `coreference` must be marks that are closed again"),
        (coreference("-", "0)", *NONE[2:]), "line 3: `coreference` must be marks that close what is open"),
        (coreference("x", *NONE[1:]), "line 2: `coreference` must be marks such as"),
        (coreference(*NONE, end=""), "the document that begins in line 1 does not end"),
        (coreference(*NONE, end="") + coreference(*NONE), "the document that begins in line 1 does not end"),
        (coreference(*NONE) + "#end document\n", "line 12 ends a document that has not begun"),
        (coreference(*NONE) + "stray\n", "line 12 stands before #begin document"),
        ("#begin document (x); part 0\na b c\n", "line 2 has 3 columns, not 11 or more"),
    ],
)
def test_bad_coreference_is_told(content: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(LongspanError) as error:
        read_dataset(file(tmp_path, content), CLUSTERS)
    assert reason in str(error.value)
