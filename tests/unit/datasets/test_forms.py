"""Examples of every task are made of their columns; what cannot be an example is named by file and line."""

import json
from pathlib import Path
from typing import Any

import pytest

import longspan
from longspan.datasets import Dataset, read_dataset
from longspan.datasets.form import Form
from longspan.datasets.forms import CHOICES, CLUSTERS, ENTAILMENTS, PAIRS, QUESTIONS, SUMMARIES, TAGS, TEXTS
from longspan.errors import LongspanError
from longspan.tasks.registry import TASKS
from unit.tasks.tiny import reader

WHERE: dict[str, object] = {"question": "Where?", "context": "In Rome, in Rome."}
WHICH: dict[str, object] = {"question": "Which?", "choices": ["Rome", "London"]}
GOOD: dict[str, tuple[Form, dict[str, object], list[object], object]] = {
    "a class": (TEXTS, {"Sentence": "a", "label": "x"}, ["a"], "x"),
    "entailment": (
        ENTAILMENTS,
        {"premise": "In Rome.", "hypothesis": "There.", "label": "yes", "evidence": [[3, 7]]},
        ["In Rome.", "There."],
        "yes",
    ),
    "SQuAD's answers": (
        QUESTIONS,
        {**WHERE, "answers": {"text": ["Rome"], "answer_start": [12]}},
        ["Where?", "In Rome, in Rome."],
        [(12, 16)],
    ),
    "an answer that stands twice": (
        QUESTIONS,
        {**WHERE, "answer": "rome"},
        ["Where?", "In Rome, in Rome."],
        [(3, 7), (12, 16)],
    ),
    "no answer": (QUESTIONS, {**WHERE, "answers": []}, ["Where?", "In Rome, in Rome."], []),
    "an impossible question": (
        QUESTIONS,
        {**WHERE, "is_impossible": True, "answers": []},
        ["Where?", "In Rome, in Rome."],
        [],
    ),
    "spans": (QUESTIONS, {**WHERE, "spans": [[3, 7]]}, ["Where?", "In Rome, in Rome."], [(3, 7)]),
    "one of several spellings": (
        QUESTIONS,
        {**WHERE, "answers": ["Roma", "Rome,\n in"]},
        ["Where?", "In Rome, in Rome."],
        [(3, 11)],
    ),
    "a choice by its number": (CHOICES, {**WHICH, "label": 1}, ["Which?", ["Rome", "London"]], 1),
    "a choice by its letter": (CHOICES, {**WHICH, "answer": "B"}, ["Which?", ["Rome", "London"]], 1),
    "a choice by its text": (CHOICES, {**WHICH, "answer": "London"}, ["Which?", ["Rome", "London"]], 1),
    "a choice about a text": (
        CHOICES,
        {**WHICH, "article": "Long.", "label": 0},
        ["Which?\n\nLong.", ["Rome", "London"]],
        0,
    ),
    "entities": (
        TAGS,
        {"text": "In Rome", "entities": [{"start": 3, "end": 7, "label": "LOC", "word": "Rome"}]},
        ["In Rome"],
        [(3, 7, "LOC")],
    ),
    "tokens": (
        TAGS,
        {"tokens": ["In", "New", "York"], "ner_tags": ["O", "B-LOC", "I-LOC"]},
        ["In New York"],
        [(3, 11, "LOC")],
    ),
    "a summary": (SUMMARIES, {"article": "Long.", "highlights": "Short."}, ["Long."], "Short."),
    "a summary for a query": (
        SUMMARIES,
        {"document": "Long.", "query": "What?", "summary": ["Short.", "Brief."]},
        ["What?\n\nLong."],
        "Short.",
    ),
    "a pair": (PAIRS, {"anchor": "a", "positive": "b"}, ["a"], "b"),
    "clusters": (
        CLUSTERS,
        {"text": "Anna, she", "clusters": [[[0, 4], [6, 9]]]},
        ["Anna, she"],
        [[(0, 4), (6, 9)]],
    ),
}


def read(folder: Path, form: Form, *rows: dict[str, object], **options: Any) -> Dataset:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_dataset(path, form, **options)


@pytest.mark.parametrize("case", GOOD)
def test_a_row_becomes_inputs_and_a_label(case: str, tmp_path: Path) -> None:
    form, row, inputs, label = GOOD[case]
    dataset = read(tmp_path, form, row)
    assert [column[0] for column in dataset.inputs] == inputs
    assert dataset.labels[0] == label


BAD: dict[str, tuple[Form, dict[str, object], str]] = {
    "no text": (TEXTS, {"title": "a", "label": "x"}, "there is no column `text`"),
    "an empty text": (TEXTS, {"text": " ", "label": "x"}, "`text` must be a text with something in it"),
    "a number for a text": (TEXTS, {"text": 7, "label": "x"}, "`text` must be a text with something in it"),
    "no label": (TEXTS, {"text": "a", "label": None}, "`label` must be given"),
    "an empty label": (TEXTS, {"text": "a", "label": ""}, "`label` must be given"),
    "an object for a label": (TEXTS, {"text": "a", "label": {"x": 1}}, "`label` must be a name"),
    "evidence beyond the end": (
        ENTAILMENTS,
        {"premise": "a", "hypothesis": "b", "label": "x", "evidence": [[0, 2]]},
        "`evidence` must be spans in the 1 characters of the text",
    ),
    "other words than the answer's": (
        QUESTIONS,
        {**WHERE, "answers": {"text": ["Rome"], "answer_start": [4]}},
        "the answer 'Rome' should begin at character 4, but there stands 'ome,'. It stands at 3.",
    ),
    "a start before the text": (
        QUESTIONS,
        {**WHERE, "answers": [{"text": "Rome", "answer_start": -3}]},
        "should begin at character -3",
    ),
    "fewer starts than texts": (
        QUESTIONS,
        {**WHERE, "answers": {"text": ["Rome"], "answer_start": []}},
        "`answer_start` must be one number for each of the 1 texts",
    ),
    "a start that is no number": (
        QUESTIONS,
        {**WHERE, "answers": [{"text": "Rome", "answer_start": "3"}]},
        "`answer_start` must be a whole number",
    ),
    "a part of a word": (QUESTIONS, {**WHERE, "answers": ["Rom"]}, "does not stand in the text"),
    "a span that ends before it begins": (QUESTIONS, {**WHERE, "spans": [[7, 3]]}, "must be spans in the 17"),
    "no answers": (QUESTIONS, WHERE, "`answers` must be given, [] for none"),
    "a number for answers": (QUESTIONS, {**WHERE, "answers": 3}, "`answers` must be a list of [start, end]"),
    "a choice that is not offered": (CHOICES, {**WHICH, "label": 2}, "from 0 to 1, its letter or its text"),
    "no right choice": (CHOICES, {**WHICH, "label": None}, "`label` must be the number of the right choice"),
    "no choices": (CHOICES, {**WHICH, "choices": [], "label": 0}, "`choices` must be a list of texts"),
    "an entity with other words": (
        TAGS,
        {"text": "In Rome", "entities": [{"start": 0, "end": 2, "label": "LOC", "word": "Rome"}]},
        "the entity 'Rome' should stand at 0 to 2, but there stands 'In'",
    ),
    "an entity without a name": (
        TAGS,
        {"text": "In Rome", "entities": [[0, 2]]},
        "a list of [start, end, name]",
    ),
    "fewer tags than tokens": (TAGS, {"tokens": ["a", "b"], "tags": ["O"]}, "one for each of the 2 tokens"),
    "a tag of another kind": (
        TAGS,
        {"tokens": ["a"], "tags": ["X-LOC"]},
        "O, or a name after B-, I-, E- or S-",
    ),
    "no entities": (TAGS, {"text": "a"}, "`entities` must be given, [] for none"),
    "an empty summary": (SUMMARIES, {"document": "a", "summary": ""}, "`summary` must be a text"),
    "no summaries": (SUMMARIES, {"document": "a", "summary": []}, "`summary` must be a text"),
    "a mention in two clusters": (
        CLUSTERS,
        {"text": "ab", "clusters": [[[0, 1]], [[0, 1]]]},
        "each mention once",
    ),
    "an empty cluster": (CLUSTERS, {"text": "ab", "clusters": [[]]}, "each mention once"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_an_error_with_file_and_line(case: str, tmp_path: Path) -> None:
    form, row, reason = BAD[case]
    good = next(row for known, row, *_ in GOOD.values() if known is form)
    with pytest.raises(LongspanError) as error:
        read(tmp_path, form, *([row] if "no column" in reason else [good, row]))
    assert reason in str(error.value)
    assert f"a.jsonl, line {1 if 'no column' in reason else 2}: " in str(error.value)


def test_columns_can_be_named(tmp_path: Path) -> None:
    row: dict[str, object] = {"headline": "a", "body": "b", "label": "x"}
    assert list(read(tmp_path, TEXTS, row, columns={"text": "headline"}).inputs[0]) == ["a"]
    with pytest.raises(LongspanError, match=r"no column `tekst`. There is headline, body, label. Name it"):
        read(tmp_path, TEXTS, row, columns={"text": "tekst"})
    with pytest.raises(
        LongspanError, match=r"`columns` must name some of text, label, but has 'txt'. Did you mean text"
    ):
        read(tmp_path, TEXTS, row, columns={"txt": "body"})


def test_columns_that_no_task_takes_are_kept(tmp_path: Path) -> None:
    dataset = read(tmp_path, TEXTS, {"text": "a", "label": "x", "source": "s"}, {"text": "b", "label": "x"})
    assert dataset.more == {"source": ["s", None]}
    assert list(dataset.column("source")) == ["s", None]
    with pytest.raises(LongspanError, match="`column` must be one of source, text"):
        dataset.column("origin")


def classified(folder: Path, *labels: object, **options: Any) -> Dataset:
    return read(
        folder, TEXTS, *({"text": f"text {n}", "label": one} for n, one in enumerate(labels)), **options
    )


def test_the_kind_of_labels_is_told_by_the_data(tmp_path: Path) -> None:
    for labels, classes, problem in (
        (("b", "a"), ("a", "b"), "single"),
        ((True, False), ("false", "true"), "single"),
        ((0, 2), ("0", "1", "2"), "single"),
        ((["b"], ["a", "b"], []), ("a", "b"), "multi"),
        ((1.5, 2), (), "regression"),
        (("0.5", "2"), (), "regression"),
        (("1", "0"), ("0", "1"), "single"),
        (("1_0", "nan", "inf"), ("1_0", "inf", "nan"), "single"),
    ):
        dataset = classified(tmp_path, *labels)
        assert (dataset.classes, dataset.problem) == (classes, problem)
    assert list(classified(tmp_path, "1", "0").labels) == [1, 0]


def test_what_data_do_not_tell_can_be_said(tmp_path: Path) -> None:
    assert list(classified(tmp_path, 1, 5, problem="regression").labels) == [1.0, 5.0]
    assert classified(tmp_path, "b", "a", labels=["b", "a", "c"]).classes == ("b", "a", "c")
    assert list(classified(tmp_path, "1", "2", labels=["1", "2"]).labels) == ["1", "2"]


@pytest.mark.parametrize(
    ("labels", "options", "reason"),
    [
        (("a", 1), {}, r"line 2: `label` must be a name, as in line 1, but is 1"),
        (("a", ["a"]), {}, r"line 2: `label` must be a name, as in line 1"),
        ((["a"], [1]), {}, r"line 2: `label` must be of the kind of 'a', as others are"),
        ((1.5, "a"), {}, r"line 2: `label` must be a number, as others are"),
        (
            ([0.5], [0.5, 1.5]),
            {"problem": "regression"},
            r"line 2: `label` must be as many numbers as in line 1",
        ),
        ((0, -1), {}, r"line 2: `label` must be the number of a class, from 0 to 0"),
        ((0, 2), {"labels": ["a", "b"]}, r"line 2: `label` must be the number of a class, from 0 to 1"),
        (
            ("a", "B"),
            {"labels": ["a", "b"]},
            r"line 2: `label` must be one of a, b, but is 'B'. Did you mean b",
        ),
        (("a",), {"labels": ["a", "a"]}, "names of classes, each once"),
        (("a",), {"labels": "a"}, "`labels` must be a list of names"),
        ((1.5,), {"labels": ["a"]}, "A regression has no classes"),
        (("a",), {"problem": "multi"}, "`label` must be a list for the problem 'multi'"),
        (("a",), {"problem": "several"}, "`problem` must be one of single, multi, regression"),
    ],
)
def test_labels_that_contradict_each_other_are_an_error(
    labels: tuple[object, ...], options: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(LongspanError, match=reason):
        classified(tmp_path, *labels, **options)


def test_tags_have_classes_that_begin_and_go_on(tmp_path: Path) -> None:
    row: dict[str, object] = {"text": "In Rome", "entities": [[3, 7, "LOC"]]}
    assert read(tmp_path, TAGS, row).classes == ("O", "B-LOC", "I-LOC")
    assert read(tmp_path, TAGS, row, labels=["O", "LOC"]).classes == ("O", "LOC")
    with pytest.raises(LongspanError, match="`entity` must be one of O, B-PER"):
        read(tmp_path, TAGS, row, labels=["O", "B-PER"])


def test_examples_without_classes_take_no_names(tmp_path: Path) -> None:
    with pytest.raises(LongspanError, match="`labels` must be None"):
        read(tmp_path, SUMMARIES, {"document": "a", "summary": "b"}, labels=["a"])


CASES = {
    task: next(case for case in GOOD.values() if case[0] is TASKS[task].form)
    for task in TASKS
    if TASKS[task].form
}


@pytest.mark.parametrize("task", [task for task in CASES if TASKS[task].backbones != "decoder"])
def test_a_dataset_is_what_a_reader_takes(task: str, tmp_path: Path) -> None:
    form, row, *_ = CASES[task]
    rows = [{**row, "id": number} for number in range(2)]
    dataset = read(tmp_path, form, *rows)
    one = reader("longformer", task, **({"labels": 3} if TASKS[task].has_labels else {}))
    if dataset.classes:
        one.labels = (*dataset.classes, "other", "more")[:3]
    assert isinstance(one, longspan.Reader)
    assert len(one.examples(*dataset.inputs, labels=dataset.labels).lengths) == 2
