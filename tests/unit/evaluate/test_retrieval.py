"""Evaluation of retrieval: collections are read as they are published, and figures count what they say."""

import json
from pathlib import Path

import numpy as np
import pytest

from longspan.cli import main
from longspan.errors import InputError
from longspan.evaluate.collections import Collection, Query, nq, qmsum, rfc
from longspan.evaluate.retrieval import answers, by_document, by_passage, chunked, cut
from unit.search.folders import text, tiny
from unit.tasks.tiny import reader

ABSTRACT = "   This memo says how packets find their way through networks of any size, and what to do if not."


@pytest.fixture
def rfcs(tmp_path: Path) -> Path:
    for number in range(70):
        page = f"\n\nSomebody                                                        [Page {number}]\n\f\n"
        front = f"RFC {number}\n\n                    Title {number}\n\nAbstract\n\n{ABSTRACT} "
        body = f"{front}Number {number}.\n\n1. Introduction\n\n   Body {number}."
        (tmp_path / f"rfc{number}.txt").write_text(body + page)
    (tmp_path / "rfc99.txt").write_text("An RFC without what others begin with.\n")
    return tmp_path


def test_an_rfc_is_asked_for_by_its_abstract_which_is_cut_out(rfcs: Path) -> None:
    found, chosen = rfc(rfcs), rfc(rfcs, "development")
    assert (len(found.documents), len(found.queries)) == (11, 10)  # one has no abstract
    assert len(chosen.documents) == len(chosen.queries) == 60
    assert not {*found.documents} & {*chosen.documents}
    for query in found.queries:
        body = found.documents[query.document]
        assert "This memo" not in body
        assert "[Page" not in body
        number = query.text.split()[-1]
        assert f"Body {number}" in body
    assert rfc(rfcs) == found


def test_questions_to_meetings_point_at_the_turns_that_answer(tmp_path: Path) -> None:
    turns = [{"speaker": f"S{i}", "content": f"turn {i} {{disfmarker}} ."} for i in range(6)]
    asked = [{"query": "Why?", "relevant_text_span": [["1", "2"], ["5", "9"]]}]
    meeting = {"meeting_transcripts": turns, "specific_query_list": asked}
    (tmp_path / "one.json").write_text(json.dumps(meeting))
    found = qmsum(tmp_path)
    (query,) = found.queries
    said = [found.documents[0][a:b] for a, b in query.spans]
    assert said == ["S1: turn 1  .\nS2: turn 2  .\n", "S5: turn 5  .\n"]


def test_stacks_hold_every_passage_once_where_the_question_says(tmp_path: Path) -> None:
    entries = [
        {"question": f"q{i}", "ctxs": [{"title": f"T{i % 300}", "text": f"passage {i % 300} " * 30}]}
        for i in range(310)
    ]
    path = tmp_path / "nq.jsonl"
    path.write_text("\n".join(map(json.dumps, entries)))
    found = nq(path)
    assert len(found.queries) == 310
    assert len(found.documents) > 1
    for query in found.queries:
        ((start, end),) = query.spans
        number = int(query.text[1:]) % 300
        assert found.documents[query.document][start:end] == f"T{number}\n" + f"passage {number} " * 30
    assert sum(document.count("T7\n") for document in found.documents) == 1


def test_an_answer_shares_half_of_the_passage_or_of_itself() -> None:
    query = Query("who?", 3, ((100, 200), (500, 510)))
    assert answers(query, (3, 0, 150))
    assert not answers(query, (3, 0, 149))
    assert answers(query, (3, 120, 130))
    assert answers(query, (3, 400, 505))
    assert not answers(query, (2, 100, 200))


def test_chunks_cover_the_text_and_cutting_keeps_the_beginning() -> None:
    made, whole = tiny(), text(1)
    chunks = chunked(made, whole, 50)
    assert chunks[0][0] == 0
    assert chunks[-1][1] == len(whole)  # this tokenizer makes tokens of white space, too
    assert whole.startswith(cut(made, whole, 100))
    assert len(made.tokenizer.encode(cut(made, whole, 100))) == 100
    assert cut(made, "Rome", 100) == "Rome"


@pytest.mark.filterwarnings("ignore")
def test_figures_are_those_of_a_plain_ranking() -> None:
    documents = [text(number, 12) for number in range(5)]
    queries = [Query(document[40:90], number) for number, document in enumerate(documents)]
    collection = Collection("tiny", documents, queries)
    short, long = reader("bert", "encode", positions=512), tiny()
    rows = {row.method: row.figures for row in by_document(collection, short, long, 512)}
    assert list(rows)[-2:] == ["whole document", "whole document + best passage"]
    questions = np.asarray(short.encode([query.text for query in queries], normalize=True))
    vectors = np.asarray(long.encode(documents, normalize=True))
    order = np.argsort(-(questions @ vectors.T), axis=1)
    ranks = [1 + order[i].tolist().index(i) for i in range(5)]
    assert rows["whole document"]["MRR"] == pytest.approx(np.mean(1 / np.array(ranks)))


def test_passages_are_found_through_an_index_by_every_mode() -> None:
    documents = [text(number, 30) for number in range(3)]
    places = [(200, 260), (300, 380), (100, 150)]
    queries = [Query(documents[i][a:b], i, ((a, b),)) for i, (a, b) in enumerate(places)]
    made = tiny()
    rows = list(by_passage(Collection("tiny", documents, queries), made, made))
    assert [row.method for row in rows][-3:] == ["whole document", "BM25", "whole document + BM25"]
    for row in rows:
        assert row.figures["recall@1"] <= row.figures["recall@5"] <= row.figures["recall@10"] <= 1
    assert rows[-2].figures["recall@10"] > 0  # the words themselves are in the index


def test_mistakes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str], rfcs: Path) -> None:
    assert main(["eval", "search"]) == 2
    assert "--rfc" in capsys.readouterr().err
    with pytest.raises(InputError, match="part"):
        rfc(rfcs, "training")
    with pytest.raises(InputError, match="folder"):
        qmsum(tmp_path / "nowhere")
    with pytest.raises(InputError, match="--nq"):
        nq(tmp_path / "nowhere")
    (tmp_path / "one.json").write_text("{")
    with pytest.raises(InputError, match=r"`one.json` must be a meeting of QMSum, but is 'JSONDecodeError"):
        qmsum(tmp_path)
    (tmp_path / "one.json").write_text("[]")
    with pytest.raises(InputError, match=r"`one.json` must be a meeting of QMSum, but is 'TypeError"):
        qmsum(tmp_path)
    (tmp_path / "nq.jsonl").write_text('{"question": "q"}')
    with pytest.raises(InputError, match=r"`nq.jsonl` must be lines of Natural Questions"):
        nq(tmp_path / "nq.jsonl")
    (tmp_path / "nq.jsonl").write_text("")
    with pytest.raises(InputError, match=r"`--nq` must be a file of questions .* which is empty"):
        nq(tmp_path / "nq.jsonl")


def test_too_few_rfcs_are_refused_before_work_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rfcs: Path
) -> None:
    few = tmp_path / "few"
    few.mkdir()
    for path in sorted(rfcs.glob("*.txt"))[:30]:
        (few / path.name).write_bytes(path.read_bytes())
    assert main(["eval", "search", "--rfc", str(few)]) == 2
    assert "more than 60 RFCs that have an abstract" in capsys.readouterr().err
