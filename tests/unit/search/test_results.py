"""What a search prints: the answer marked, its place, and nothing that a terminal would obey."""

from dataclasses import replace
from pathlib import Path

import pytest

from longspan.search.request import surroundings
from longspan.search.results import Hit, Hits
from machine import assert_linear

TEXT = "It rains. Rivers\x1b[2J flow to the sea. Then it is dry."
HIT = Hit(
    file=Path("a\x1b.pdf").absolute(),
    page=3,
    line=None,
    start=100,
    end=100 + len(TEXT),
    answer_start=110,
    answer_end=138,
    answer_page=4,
    answer_line=None,
    where="page 4",
    score=0.5,
    dense=0.512,
    bm25=None,
    text=TEXT,
)


def lines(hit: Hit, **options: object) -> list[str]:
    (shown,) = Hits("river", [hit]).lines(**options)  # type: ignore[arg-type]
    return shown.split("\n")


def test_the_answer_is_bold_and_words_of_the_query_are_underlined_and_escapes_are_not_obeyed() -> None:
    first, text = lines(HIT, color=True)
    assert first == "1. \033[1ma�.pdf, page 4\033[0m  \033[2m(50 %, meaning 0.51)\033[0m"
    assert text == "   It rains. \033[1;4mRivers\033[0m\033[1m�[2J flow to the sea.\033[0m Then it is dry."


def test_without_color_the_answer_stands_between_quotes() -> None:
    assert lines(HIT)[1] == "   It rains. »Rivers�[2J flow to the sea.« Then it is dry."
    whole = replace(HIT, answer_start=100, answer_end=HIT.end)
    assert "»" not in lines(whole)[1]
    assert "\033" not in lines(HIT, width=40)[0]


def test_a_notebook_shows_the_answer_marked() -> None:
    shown = Hits("river", [HIT])._repr_html_()
    assert "<mark><b>Rivers</b>�[2J flow to the sea.</mark> Then" in shown
    assert "<b>a�.pdf, page 4</b> <small>(50 %, meaning 0.51)</small>" in shown


def test_a_place_is_a_hyperlink_to_the_page() -> None:
    (first, _) = lines(replace(HIT, file=Path("/a b/c.pdf")), links=True)
    assert first.startswith("1. \033]8;;file:///a%20b/c.pdf#page=4\033\\/a b/c.pdf, page 4\033]8;;\033\\")
    assert "#" not in replace(HIT, where="slide 4").url


def test_title_headings_and_identical_files_are_named(tmp_path: Path) -> None:
    same = tuple(tmp_path / f"{number}.pdf" for number in range(5))
    hit = replace(HIT, title="Rivers", section=("Rivers", "1\nFlow"), same=same)
    _, headings, _, last = lines(hit, here=tmp_path)
    assert headings.strip() == "Rivers › 1 Flow"
    assert last.strip() == "also in: 0.pdf, 1.pdf, 2.pdf, 2 more"


def test_lines_fit_the_terminal() -> None:
    hit = replace(HIT, text="a river flows " * 9, answer_line=7, bm25=7.25, dense=0.5)
    first, *rest = lines(replace(hit, score=0.5), width=50)
    assert first.endswith(".pdf:7  (50 %, meaning 0.50, words 7.2)")
    assert len(rest) > 2
    assert all(len(line) <= 50 and line.startswith("   ") for line in rest)


@pytest.mark.parametrize(
    ("hits", "start"),
    [
        (Hits("riv\x1ber", []), "nothing found for 'riv�er'"),
        (Hits("river", [HIT], answered=False), "no good match for 'river'; the best tries:\n\n1. "),
        (Hits("river", [HIT]), "1. "),
    ],
)
def test_hits_that_are_no_answers_say_so(hits: Hits, start: str) -> None:
    assert repr(hits).startswith(start)
    assert hits.answered == (start == "1. ")


def test_context_keeps_the_lines_of_the_document() -> None:
    def context(hit: Hit) -> tuple[int, str]:
        return 95, "Old.\n" + TEXT + "\nNew."

    shown = lines(HIT, context=context)
    assert [line.strip() for line in shown[1:]] == [
        "Old.",
        "It rains. »Rivers�[2J flow to the sea.« Then it is dry.",
        "New.",
    ]


def test_the_time_to_show_context_grows_with_the_text_alone() -> None:
    """A billion lines are asked for, and a line has all its words of the query."""

    def show(words: int) -> None:
        text = "The river. " * words
        begin, end = surroundings(text, 500, 510, 10**9)
        shown = lines(HIT, color=True, width=80, context=lambda hit: (begin, text[begin:end]))
        assert (begin, end) == (0, len(text))
        assert len(shown) > len(text) // 80

    assert_linear(show, 10_000)


@pytest.mark.parametrize(
    ("score", "likely", "shown"),
    [
        (0.5, True, "(50 %, meaning 0.51)"),
        (1e-9, True, "(<1 %, meaning 0.51)"),
        (1.63, False, "(meaning 0.51)"),
    ],
)
def test_a_score_is_a_percentage_only_if_it_is_a_likelihood(score: float, likely: bool, shown: str) -> None:
    (line,) = Hits("river", [replace(HIT, score=score)], likely=likely)[:1].lines()
    assert line.split("\n")[0].endswith(f"page 4  {shown}")


def test_lines_of_context_that_are_all_answer_are_marked() -> None:
    for text, shown in (
        ("Before.\nRivers flow to the sea...\n", "»Rivers flow to the sea...«"),
        ("It.", "It."),
    ):
        begin = 110 - text.find("Rivers") if "Rivers" in text else 110
        hit = replace(HIT, answer_end=136 if "Rivers" in text else 113)
        assert lines(hit, context=lambda _, begin=begin, text=text: (begin, text))[-1].strip() == shown
