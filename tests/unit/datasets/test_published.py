"""The formats of published datasets, as their files are: rows with plain names, and errors that say where."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longspan.datasets import Dataset, read_dataset
from longspan.datasets.form import Form
from longspan.datasets.forms import CHOICES, ENTAILMENTS, QUESTIONS, SUMMARIES
from longspan.errors import LongspanError

CONTEXT = "Anna lives in Rome. She works there."


def squad() -> dict[str, Any]:
    asked = [
        {"id": "1", "question": "Where?", "answers": [{"text": "Rome", "answer_start": 14}]},
        {"id": "2", "question": "When?", "answers": [], "is_impossible": True},
        {
            "id": "3",
            "question": "Who?",
            "answers": [{"text": w, "answer_start": s} for w, s in (("Anna", 0), ("She", 20))],
        },
    ]
    return {
        "version": "v2.0",
        "data": [{"title": "Anna", "paragraphs": [{"context": CONTEXT, "qas": asked}]}],
    }


def nq() -> dict[str, Any]:
    passages = [{"title": "Anna", "text": CONTEXT}, {"title": "Rome", "text": "A city."}]
    return {"question": "where is anna", "answers": ["rome", "Roma"], "ctxs": passages}


def contract_nli() -> dict[str, Any]:
    said = {"nda-1": {"choice": "Entailment", "spans": [1]}, "nda-2": {"choice": "NotMentioned", "spans": []}}
    document = {"id": 3, "file_name": "a.txt", "text": CONTEXT, "spans": [[0, 19], [20, 36]]}
    hypotheses = {"nda-1": {"hypothesis": "She works."}, "nda-2": {"hypothesis": "She sleeps."}}
    return {"documents": [{**document, "annotation_sets": [{"annotations": said}]}], "labels": hypotheses}


def hotpot() -> list[Any]:
    context = [["Anna", ["Anna lives in Rome.", " She works."]], ["Rome", ["A city."]]]
    facts = [["Anna", 0], ["Rome", 0]]
    one = {"question": "Where?", "answer": "Rome", "context": context, "supporting_facts": facts}
    return [{**one, "_id": "a", "type": "bridge"}, {**one, "_id": "b", "answer": "yes"}]


def wikihop() -> list[Any]:
    texts = {"supports": ["Anna lives in Rome.", "Rome is in Italy."], "candidates": ["france", "italy"]}
    return [{"id": "1", "query": "country_of anna", "answer": "italy", **texts}]


def quality() -> dict[str, Any]:
    asked = {"question": "Where?", "options": ["Rome", "London"], "gold_label": 2, "difficult": 1}
    return {"article_id": "7", "article": CONTEXT, "questions": [{**asked, "question_unique_id": "7_1"}]}


def qmsum() -> dict[str, Any]:
    turns = [{"speaker": who, "content": "Yes ."} for who in ("Anna", "Bob", "Anna")]
    specific = [{"query": "What did Bob say?", "answer": "Yes.", "relevant_text_span": [["1", "2"]]}]
    general = [{"query": "Summarize.", "answer": "They agree."}]
    return {"meeting_transcripts": turns, "specific_query_list": specific, "general_query_list": general}


def squality() -> dict[str, Any]:
    asked = {"question_text": "What?", "responses": [{"response_text": one} for one in ("First.", "Second.")]}
    return {"metadata": {"passage_id": "63833"}, "document": CONTEXT, "questions": [asked]}


def read(folder: Path, name: str, content: object, form: Form, **options: Any) -> Dataset:
    path = folder / name
    path.write_text(json.dumps(content, indent=None if name.endswith("l") else 1))
    return read_dataset(path, form, **options)


def test_squad_has_answers_several_and_none(tmp_path: Path) -> None:
    dataset = read(tmp_path, "a.json", squad(), QUESTIONS)
    assert list(dataset.labels) == [[(14, 18)], [], [(0, 4), (20, 23)]]
    assert list(dataset.ids) == ["1", "2", "3"]
    assert list(dataset.column("title")) == ["Anna"] * 3
    assert len(set(dataset.documents)) == 1


def test_a_wrong_answer_of_squad_is_told_by_its_place(tmp_path: Path) -> None:
    wrong = squad()
    wrong["data"][0]["paragraphs"][0]["qas"][2]["answers"][1]["answer_start"] = 21
    with pytest.raises(LongspanError) as error:
        read(tmp_path, "a.json", wrong, QUESTIONS)
    place = "a.json, line 4, paragraphs[0].qas[2]: the answer 'She' should begin at character 21"
    assert f"{place}, but there stands 'he '. It stands at 20." in str(error.value)


def test_passages_of_natural_questions_are_one_context(tmp_path: Path) -> None:
    dataset = read(tmp_path, "a.jsonl", nq(), QUESTIONS)
    assert dataset.inputs[1][0] == f"Anna\n{CONTEXT}\n\nRome\nA city."
    assert list(dataset.labels) == [[(19, 23), (43, 47)]]
    assert list(dataset.column("answers")) == [["rome", "Roma"]]


def test_hypotheses_have_the_spans_that_decide_them(tmp_path: Path) -> None:
    dataset = read(tmp_path, "a.json", contract_nli(), ENTAILMENTS)
    assert list(dataset.inputs[1]) == ["She works.", "She sleeps."]
    assert list(dataset.labels) == ["Entailment", "NotMentioned"]
    assert list(dataset.column("evidence")) == [[(20, 36)], []]
    assert list(dataset.ids) == ["3-nda-1", "3-nda-2"]


def test_paragraphs_have_the_sentences_that_support_an_answer(tmp_path: Path) -> None:
    dataset = read(tmp_path, "a.json", hotpot(), QUESTIONS)
    context, spans = str(dataset.inputs[1][0]), dataset.column("evidence")[0]
    assert isinstance(spans, list)
    assert [context[start:end] for start, end in spans] == ["Anna lives in Rome.", "A city."]
    assert list(dataset.labels) == [[(19, 23), (37, 41)], []]
    assert list(dataset.column("said")) == ["Rome", "yes"]


def test_candidates_are_choices(tmp_path: Path) -> None:
    dataset = read(tmp_path, "a.json", wikihop(), CHOICES)
    assert dataset.inputs[0][0] == "country of anna\n\nAnna lives in Rome.\n\nRome is in Italy."
    assert (list(dataset.inputs[1]), list(dataset.labels)) == ([["france", "italy"]], [1])


def test_choices_of_a_story_are_counted_from_one_in_the_file(tmp_path: Path) -> None:
    dataset = read(tmp_path, "a.jsonl", quality(), CHOICES)
    assert dataset.inputs[0][0] == f"Where?\n\n{CONTEXT}"
    assert (list(dataset.labels), list(dataset.ids)) == ([1], ["7_1"])
    assert "label: London" in dataset.preview()


def test_turns_of_a_meeting_are_lines(tmp_path: Path) -> None:
    dataset = read(tmp_path, "a.json", qmsum(), SUMMARIES)
    assert list(dataset.labels) == ["They agree.", "Yes."]
    assert dataset.inputs[0][1] == "What did Bob say?\n\nAnna: Yes .\nBob: Yes .\nAnna: Yes .\n"
    assert list(dataset.column("evidence")) == [[], [(12, 34)]]


def test_a_question_has_several_summaries(tmp_path: Path) -> None:
    dataset = read(tmp_path, "a.jsonl", squality(), SUMMARIES)
    assert dataset.inputs[0][0] == f"What?\n\n{CONTEXT}"
    assert list(dataset.labels) == ["First."]
    assert list(dataset.column("references")) == [["First.", "Second."]]


DAMAGES: list[tuple[Callable[[], Any], Form, str, str]] = [
    (squad, QUESTIONS, "data.0.paragraphs.0.qas.1.question", "paragraphs[0].qas[1]: `question` is missing"),
    (squad, QUESTIONS, "data.0.paragraphs.0.context", "paragraphs[0]: `context` is missing"),
    (nq, QUESTIONS, "ctxs.0.text", "line 1: `text` is missing: it must be a text. There is title"),
    (contract_nli, ENTAILMENTS, "labels.nda-1", "`nda-1` is missing"),
    (
        contract_nli,
        ENTAILMENTS,
        "documents.0.annotation_sets.0.annotations.nda-1.choice",
        "`choice` is missing",
    ),
    (contract_nli, ENTAILMENTS, "documents.0.spans.1", "`spans` must be numbers of the 1 spans"),
    (hotpot, QUESTIONS, "0.context.1", "`supporting_facts` must be pairs of a title"),
    (hotpot, QUESTIONS, "0.context.0.1", "`context` must be a list of [title, sentences]"),
    (wikihop, CHOICES, "0.answer", "`answer` is missing"),
    (wikihop, CHOICES, "0.candidates.1", "`label` must be the number of a choice"),
    (quality, CHOICES, "questions.0.gold_label", "questions[0]: `gold_label` is missing"),
    (qmsum, SUMMARIES, "meeting_transcripts.0.content", "`content` is missing"),
    (
        qmsum,
        SUMMARIES,
        "specific_query_list.0.relevant_text_span.0.1",
        "specific_query_list[0]: `relevant_text",
    ),
    (
        squality,
        SUMMARIES,
        "questions.0.responses.0.response_text",
        "questions[0]: `response_text` is missing",
    ),
    (squality, SUMMARIES, "questions.0.responses", "questions[0]: `responses` is missing"),
]


@pytest.mark.parametrize(
    ("make", "form", "lost", "reason"),
    DAMAGES,
    ids=[f"{make.__name__} {lost}" for make, _, lost, _ in DAMAGES],
)
def test_what_is_missing_is_told(
    make: Callable[[], Any], form: Form, lost: str, reason: str, tmp_path: Path
) -> None:
    content = part = make()
    *way, last = [int(step) if step.isdecimal() else step for step in lost.split(".")]
    for step in way:
        part = part[step]
    del part[last]
    name = "a.jsonl" if make in (nq, quality, squality) else "a.json"
    with pytest.raises(LongspanError) as error:
        read(tmp_path, name, content, form)
    assert reason in str(error.value)
    assert name in str(error.value)


HEADER = "Filename,Document Name,Document Name-Answer,Parties,Notice- Answer\n"


@pytest.fixture
def contracts(tmp_path: Path) -> Path:
    """A folder as CUAD's."""
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts/A_B Agreement.txt").write_text("The  AGREEMENT of Anna and, with others, Bob.")
    return tmp_path


def clauses(folder: Path, row: str) -> Dataset:
    (folder / "master_clauses.csv").write_text(HEADER + row + "\n")
    return read_dataset(folder, QUESTIONS)


def test_clauses_are_found_in_the_contract(contracts: Path) -> None:
    row = (
        """A&B Agreement.pdf,['The Agreement'],The Agreement,"['Anna <omitted> Bob', 'AGREEMENT']",30 days"""
    )
    dataset = clauses(contracts, row)
    assert list(dataset.labels) == [[(0, 14)], [(5, 14), (18, 22), (41, 44)]]
    assert list(dataset.column("category")) == ["Document Name", "Parties"]
    assert list(dataset.ids) == ["A_B Agreement__Document Name", "A_B Agreement__Parties"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("C.pdf,[],,[],", "line 2: there is no text of the contract 'C.pdf'"),
        ("A&B Agreement.pdf,open('x'),,[],", "line 2, Document Name: `clauses` must be a list of texts"),
        ("A&B Agreement.pdf,[1],,[],", "line 2, Document Name: `clauses` must be a list of texts"),
        ("A&B Agreement.pdf," + "[" * 5000 + ",,[],", "`clauses` must be a list of texts"),
        (
            "A&B Agreement.pdf,['Carl'],,[],",
            "line 2, Document Name: the answer 'Carl' does not stand in the text",
        ),
    ],
)
def test_bad_clauses_are_told(row: str, reason: str, contracts: Path) -> None:
    with pytest.raises(LongspanError) as error:
        clauses(contracts, row)
    assert reason in str(error.value)
