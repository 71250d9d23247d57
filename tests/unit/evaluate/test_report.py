"""Figures with their intervals, LongEmbed's task, the page, and the command that prints them."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from longspan.cli import main
from longspan.errors import InputError
from longspan.evaluate.answers import Outcome, Ranking
from longspan.evaluate.figures import Row, row
from longspan.evaluate.longembed import by_ndcg, gain, longembed_qmsum
from longspan.evaluate.questions import Question, Questions
from longspan.evaluate.report import page, state
from longspan.search.results import Hit
from unit.search.folders import filled, text, tiny


def test_a_row_says_how_many_questions_are_behind_a_figure() -> None:
    made = row("c", "m", {"a": [True, False, False, False], "b": []}, 1.0)
    assert made.figures == {"a": 0.25}
    assert made.questions == {"a": 4}
    assert str(made).startswith("m ")
    assert "0.250 [0.00-0.75]" in str(made)


def test_ndcg_of_one_relevant_document_falls_with_the_logarithm_of_its_rank() -> None:
    assert gain([3, 1], 3) == 1
    assert gain([1, 3], 3) == pytest.approx(1 / np.log2(3))
    assert gain([*range(9), 30], 30) == pytest.approx(1 / np.log2(11))
    assert gain([*range(10), 30], 30) == 0


@pytest.fixture
def meetings(tmp_path: Path) -> Path:
    for part, numbers in {"train": (0, 1), "val": (2,)}.items():
        (tmp_path / part).mkdir()
        for number in numbers:
            said = text(number, 12)
            turns = [
                {"speaker": "A", "content": said[:90]},
                {"speaker": "B", "content": "{gap} " + said[90:]},
            ]
            general = [{"query": "Summarize the meeting.", "answer": said[20:80]}]
            specific = [{"query": "Why?", "answer": said[100:150]}, {"query": "What?", "answer": "the same"}]
            lists = {"general_query_list": general, "specific_query_list": specific}
            (tmp_path / part / f"{number}.json").write_text(
                json.dumps({"meeting_transcripts": turns, **lists})
            )
    return tmp_path


def test_longembed_asks_with_each_summary_once_for_the_meeting_in_train_and_val(meetings: Path) -> None:
    task = longembed_qmsum(meetings)
    assert task.documents[2] == f"A: {text(2, 12)[:90]}\nB: {{gap}} {text(2, 12)[90:]}"
    assert [query.document for query in task.queries] == [
        0,
        0,
        0,
        1,
        1,
        2,
        2,
    ]  # "the same" belongs to the first
    assert task.queries[0].text == text(0, 12)[20:80]
    assert (len(task.limited(2).queries), len(task.limited(2).documents)) == (2, 3)
    assert task.limited(None) == task
    with pytest.raises(InputError, match="train and val"):
        longembed_qmsum(meetings / "train")


def test_documents_are_ranked_by_every_mode_beside_published_rows(meetings: Path, tmp_path: Path) -> None:
    rows = list(by_ndcg(longembed_qmsum(meetings), tiny(), tmp_path / "kept"))
    assert [row.method for row in rows[:3]] == ["hybrid", "dense", "bm25"]
    assert rows[2].figures["nDCG@10"] > 0.5
    assert all(row.published and not row.intervals for row in rows[3:])
    assert "published" in str(rows[3])
    again = list(by_ndcg(longembed_qmsum(meetings), tiny(), tmp_path / "kept"))
    assert [row.figures for row in again] == [row.figures for row in rows]


class Tags(HTMLParser):
    """The tags of a page, and whether those that must be closed are."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.seen, self.open = list[tuple[str, dict[str, str | None]]](), list[str]()
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag in ("details", "section", "blockquote", "label", "form", "script", "mark", "table"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self.open and self.open[-1] == tag:
            self.open.pop()


def test_the_page_shows_misses_beside_the_answer_and_escapes_everything() -> None:
    evil = "<script src=//evil.example></script>"
    files = {Path("/d/a&b.txt"): 0, Path("/d/other.txt"): 1}
    texts = [f"before {evil} the answer is 42 after", "another text"]
    asked = Question(evil, f"what? {evil}", "'><b>", 0, ("answer is 42",))
    hit = Hit(
        file=Path("/d/other.txt"),
        page=None,
        line=3,
        start=0,
        end=7,
        answer_start=0,
        answer_end=7,
        answer_page=None,
        answer_line=3,
        score=1,
        dense=0.5,
        bm25=None,
        text=evil,
    )
    miss = Outcome(asked, Ranking([(1, 0, 7)], True, [hit]), None, None)
    right = hit.__class__(**vars(hit) | {"file": Path("/d/a&b.txt"), "text": texts[0]})
    found = Outcome(asked._replace(id="2"), Ranking([(0, 0, 40)], True, [right]), 612, 1)
    none = Outcome(Question("3", "why?", "none", None, ()), Ranking([], False), None, None)
    questions = Questions("mine", [Path("/d")], files, texts, [], [])
    rows = [Row("mine", "hybrid", {"first 600": 0.5}, 1.0, {"first 600": (0.1, 0.9)}, {"first 600": 2})]
    source = page([rows], questions, "hybrid", [miss, found, none])
    tags = Tags(source)
    assert tags.open == []
    assert [tag for tag, _ in tags.seen].count("script") == 1  # our own
    assert not [attrs for _, attrs in tags.seen if "src" in attrs or "href" in attrs]
    assert [attrs["data-state"] for tag, attrs in tags.seen if tag == "details"] == [
        "missed",
        "later",
        "told",
    ]
    assert source.count("<mark>answer is 42</mark>") == 3  # twice in the document, once in the right hit
    assert "at character 612, hit 1" in source
    assert "a&amp;b.txt" in source
    assert "0.10&thinsp;–&thinsp;0.90" in source
    assert [state(each) for each in (miss, found, none)] == ["missed", "later", "told"]


def test_the_command_prints_rows_writes_the_page_and_tells_what_it_cannot_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = filled(tmp_path / "docs", 2)
    said = (docs / "1.txt").read_text()
    good = {"file": "1.txt", "question": said[50:120], "answers": [said[60:100]]}
    bad = {"file": "1.txt", "question": "why?", "answers": ["not in it"]}
    (tmp_path / "q.jsonl").write_text(f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    command = ["eval", "search", "--questions", str(tmp_path / "q.jsonl"), "--documents", str(docs)]
    command += ["--methods", "fts5"]
    assert main([*command, "--json", "--html", str(tmp_path / "report.html")]) == 3
    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    made = json.loads(line)
    assert made["figures"]["first 600"] == 1.0
    assert made["intervals"]["first 600"] == [1.0, 1.0]
    assert re.search("line 2.*'not in it'", printed.err)
    assert "SQLite FTS5" in (tmp_path / "report.html").read_text()
    assert main(command) == 3
    header, figures = capsys.readouterr().out.splitlines()
    assert header.index("first 600") == figures.index("1.000")
    assert main([*command, "--html", str(tmp_path / "nowhere" / "x.html")]) == 2
    assert main([*command, "--limit-questions", "0"]) == 2
    assert main([*command[:-1], "fts6"]) == 2
    assert "--methods" in capsys.readouterr().err
