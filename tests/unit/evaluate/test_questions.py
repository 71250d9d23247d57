"""Questions of anybody's collection: what is read, what is refused, and how far one reads to an answer."""

import json
from pathlib import Path

import pytest

from longspan.errors import InputError
from longspan.evaluate.answers import Outcome, Ranking, by_index, judge, summary
from longspan.evaluate.questions import Question, load_questions
from unit.search.folders import filled, tiny
from unit.tasks.tiny import reader


def written(path: Path, *entries: object) -> Path:
    path.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"a.txt": "The fee\n is 5 francs.", "b.txt": "No fee.", "copy.txt": "No fee."}.items():
        (tmp_path / "docs").mkdir(exist_ok=True)
        (tmp_path / "docs" / name).write_text(text)
    return tmp_path / "docs"


def test_answers_are_compared_without_regard_to_white_space(folder: Path, tmp_path: Path) -> None:
    asked = {"id": 7, "file": "a.txt", "question": "How much?", "answers": ["fee is\t5"], "kind": "fact"}
    nothing: dict[str, object] = {"file": None, "question": "Why?", "answers": []}
    loaded = load_questions(written(tmp_path / "q.jsonl", asked, nothing), [folder])
    assert loaded.questions[0] == Question("7", "How much?", "fact", 0, ("fee is 5",))
    assert loaded.questions[1] == Question("2", "Why?", "", None, ())
    assert loaded.warnings == []
    assert len(load_questions(tmp_path / "q.jsonl", [folder], limit=1).questions) == 1


def test_files_of_the_same_text_are_one_document(folder: Path, tmp_path: Path) -> None:
    asked = {"file": "copy.txt", "question": "How much?", "answers": ["No fee."]}
    loaded = load_questions(written(tmp_path / "q.jsonl", asked), [folder])
    assert loaded.files[folder / "b.txt"] == loaded.files[folder / "copy.txt"] == loaded.questions[0].document
    assert len(loaded.texts) == 2


def test_a_folder_has_the_name_before_the_equals_sign(folder: Path, tmp_path: Path) -> None:
    asked = {"file": "x/a.txt", "question": "How much?", "answers": ["5"]}
    file = written(tmp_path / "q.jsonl", asked)
    other = filled(tmp_path / "other", 1)
    assert load_questions(file, [other, f"x={folder}"]).questions[0].document == 1
    with pytest.raises(InputError, match=r"line 1.*x/a\.txt.*Did you mean a\.txt"):
        load_questions(file, [folder])


def test_an_answer_that_the_file_lacks_is_reported_and_its_question_left_out(
    folder: Path, tmp_path: Path
) -> None:
    half = {"file": "a.txt", "question": "How much?", "answers": ["5 francs", "6 francs"]}
    wrong = {"file": "a.txt", "question": "Who?", "answers": ["Nobody"]}
    loaded = load_questions(written(tmp_path / "q.jsonl", half, wrong), [folder])
    assert [question.answers for question in loaded.questions] == [("5 francs",)]
    assert [warning.split(":")[0] for warning in loaded.warnings] == [
        "q.jsonl, line 1",
        *["q.jsonl, line 2"] * 2,
    ]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"file": '], "line 1 is not JSON"),
        (["[]"], "line 1.*an object"),
        (['{"file": null, "question": " "}'], "`question` of `q.jsonl, line 1`"),
        (['{"file": 3, "question": "?"}'], "`file` of"),
        (['{"file": null, "question": "?", "answers": "x"}'], "`answers` of.*a list"),
        (['{"file": null, "question": "?", "answers": ["x"]}'], "`file` is null"),
        (['{"file": "a.txt", "question": "?"}'], "given with a file"),
        (
            ['{"id": "2", "file": null, "question": "?"}', "", '{"id": 2, "file": null, "question": "?"}'],
            "line 1",
        ),
        (["", " "], "a file with a question"),
    ],
)
def test_a_bad_line_is_named(folder: Path, tmp_path: Path, lines: list[str], message: str) -> None:
    (tmp_path / "q.jsonl").write_text("\n".join(lines))
    with pytest.raises(InputError, match=message):
        load_questions(tmp_path / "q.jsonl", [folder])


def test_missing_questions_and_documents_are_named(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--questions"):
        load_questions(tmp_path / "nowhere.jsonl", [folder])
    file = written(tmp_path / "q.jsonl", {"file": None, "question": "?"})
    with pytest.raises(InputError, match="--documents"):
        load_questions(file, [])
    with pytest.raises(InputError, match="--documents"):
        load_questions(file, [tmp_path / "nowhere"])


TEXTS = ["ab  cd\n\nef gh ij", "ab cd ef"]


def reach(answers: tuple[str, ...], *places: tuple[int, int, int]) -> tuple[int | None, int | None]:
    outcome = judge(Question("1", "?", "", 0, answers), Ranking(places), TEXTS)
    return outcome.reach, outcome.rank


def test_characters_are_counted_up_to_the_end_of_the_answer_in_hits_with_white_space_squeezed() -> None:
    assert reach(("b cd",), (0, 0, 8)) == (5, 1)  # "ab cd"
    assert reach(("gh",), (1, 0, 8), (0, 8, 13)) == (8 + 5, 2)  # "ab cd ef" of another document, then "ef gh"
    assert reach(("ij", "ef"), (0, 8, 16)) == (2, 1)  # the first of both
    assert reach(("ab",), (1, 0, 8)) == (None, None)  # the words of another document are no answer
    assert reach(("cd ef",), (0, 0, 6), (1, 0, 2), (0, 8, 16)) == (None, None)  # torn apart


def test_neighbors_in_the_results_and_in_the_document_are_read_as_one() -> None:
    assert reach(("cd ef",), (0, 0, 6), (0, 8, 16)) == (8, 2)
    assert reach(("ab cd",), (0, 0, 6), (0, 8, 16)) == (5, 1)
    assert reach(("gh ij",), (0, 0, 6), (0, 8, 13), (0, 14, 16)) == (14, 3)
    assert reach(("cd ef",), (0, 8, 16), (0, 0, 6)) == (None, None)  # read in the order of the results
    assert reach(("cd gh",), (0, 0, 6), (0, 11, 16)) == (None, None)  # something stands between


@pytest.mark.parametrize(
    ("before", "within"), [(596, [1, 1, 1]), (597, [0, 1, 1]), (3596, [0, 0, 1]), (3597, [0] * 3)]
)
def test_a_limit_may_cut_a_hit_but_not_the_answer(before: int, within: list[int]) -> None:
    text = "x" * before + "\n yes and more"  # with its space, the answer ends 4 characters later
    found = judge(Question("1", "?", "", 0, ("yes",)), Ranking([(0, 0, len(text))]), [text])
    assert [*summary("", "", [found]).figures.values()][:3] == within


def outcome(document: int | None, reach: int | None, *, answered: bool = True) -> Outcome:
    ranking = Ranking([(0, 0, 1)], answered, hits=["a hit"])  # type: ignore[list-item]
    return Outcome(Question("1", "?", "", document, ()), ranking, reach, None)


def test_shares_are_over_questions_with_an_answer_and_without_one() -> None:
    outcomes = [outcome(0, 600), outcome(0, 601), outcome(1, None, answered=False), outcome(0, 3600)]
    outcomes += [outcome(None, None), outcome(None, None, answered=False)]
    row = summary("mine", "method", outcomes)
    assert row.figures == {
        "first 600": 0.25,
        "first 1800": 0.5,
        "first 3600": 0.75,
        "document first": 0.75,
        "no match, wrongly": 0.25,
        "no match, rightly": 0.5,
    }
    assert row.questions["first 600"] == 4
    assert row.questions["no match, rightly"] == 2


def test_our_search_is_judged_by_every_mode_and_its_index_can_be_kept(tmp_path: Path) -> None:
    docs = filled(tmp_path / "docs", 3)
    (docs / "last.txt").write_text("Zebras pay the\nusual fee.")
    asked = {"file": "last.txt", "question": "Do zebras pay?", "answers": ["the usual fee"]}
    questions = load_questions(written(tmp_path / "q.jsonl", asked), [docs])
    rows = {row.method: outcomes for row, outcomes in by_index(questions, tiny(), tmp_path / "index")}
    assert list(rows) == ["hybrid", "dense", "bm25"]
    (found,) = rows["bm25"]
    assert found.document_first
    assert (found.rank, found.reach) == (1, len("Zebras pay the usual fee"))
    assert (tmp_path / "index").is_dir()


@pytest.mark.parametrize("labels", [1, 2])
def test_a_cross_encoder_ranks_what_the_index_proposes(tmp_path: Path, labels: int) -> None:
    asked = {"file": "2.txt", "question": "the river Thames", "answers": ["Document 2."]}
    questions = load_questions(written(tmp_path / "q.jsonl", asked), [filled(tmp_path / "docs", 3)])
    judge = reader("longformer", "classify", labels=labels, positions=512)
    rows = list(by_index(questions, tiny(), None, ("bm25",), judge))
    assert [row.method for row, _ in rows] == ["bm25", "bm25, re-ranked"]
    (before,), (after,) = (outcomes for _, outcomes in rows)
    assert {hit.text for hit in after.ranking.hits} == {hit.text for hit in before.ranking.hits}
    scores = [hit.score for hit in after.ranking.hits]
    assert scores == sorted(scores, reverse=True)
    for hit in after.ranking.hits[:2]:
        found = judge.classify({"text": "the river Thames", "text_pair": hit.text}, top_k=None)
        assert hit.score == pytest.approx({x["label"]: x["score"] for x in found}[judge.labels[-1]])
