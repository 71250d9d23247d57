"""The command `longspan` as people meet it."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from longspan import __version__
from longspan.cli import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr with which a mistake is refused."""
    status = main(arguments)
    (line,) = capsys.readouterr().err.splitlines()
    assert status == 2
    return line


def test_help_answers_at_once() -> None:
    def seconds() -> float:
        """CPU time, because this machine may be busy with other things."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "longspan", "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.3


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "--version") == f"longspan {__version__}\n"


def test_a_pattern_is_drawn_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "draw", "longformer").startswith("longformer: Window(3) | GlobalTokens()\n")


def test_a_pattern_is_drawn_from_an_expression_or_json(capsys: pytest.CaptureFixture[str]) -> None:
    expression = printed(capsys, "draw", "Window(1) & Causal()", "--length", "4")
    assert expression.splitlines()[1:] == ["0  ■ · · ·", "1  ■ ■ · ·", "2  · ■ ■ ·", "3  · · ■ ■"]
    assert printed(capsys, "draw", '{"pattern": "Causal"}') == printed(capsys, "draw", "Causal()")


def test_marked_tokens_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    plain = printed(capsys, "draw", "GlobalTokens()", "--length", "5,3")
    marked = printed(capsys, "draw", "GlobalTokens()", "--length", "5,3", "--marked", "0,2")
    assert "*" in marked
    assert "*" not in plain


def test_the_whole_gallery_is_drawn_without_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "draw")
    assert all(f"{name}: " in text for name in ("full", "window", "longformer", "bigbird", "fixed"))


def test_pictures_are_saved(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    one, folder = tmp_path / "one.svg", tmp_path / "many"
    assert printed(capsys, "draw", "window", "--svg", "--out", str(one)) == f"wrote {one}\n"
    assert one.read_text().startswith("<svg")
    printed(capsys, "draw", "window", "Full()", "--out", str(folder))
    assert {path.name for path in folder.iterdir()} == {"window.txt", "pattern-2.txt"}


def test_several_svg_pictures_need_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert "`--out` is missing: it must be a folder" in complaint(capsys, "draw", "--svg")


def test_a_pattern_is_explained_with_its_plan(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "explain", "Window(64) | GlobalTokens()", "--length", "300", "--marked", "0")
    assert "A token sees itself, 64 tokens to the left and 64 to the right." in text
    assert "12 heads" in text
    assert "tiled" in text


def test_a_stack_of_layers_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(
        capsys, "explain", "Window(2, dilation=(1, 3))", "Window(4)", "--repeat", "2", "--length", "99,50"
    )
    assert "4 layers, 2 heads of size 64\n149 tokens in 2 documents" in text
    assert "layers 1 and 3" in text
    assert "graph     layers 1 and 3: no star, diameter 25" in text


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("windo", "`WHAT` must be a pattern of the gallery, an expression such as"),
        ("Windo(3)", "must be one of Belongs, BlockWindow"),
        ("Window(", "must be an expression, JSON, or one of"),
        ("Window(0)", "`radius` must be at least 1, but is 0"),
        ("Window(4, colour=3)", "colour"),
        ("Window(3) - Full()", "the operators |, & and +"),
        ("Window(__import__('os'))", "must be one of Belongs, BlockWindow"),
        ('{"pattern": "Windo"}', "must be one of Belongs, BlockWindow"),
        ('{"pattern"', "must be an expression, JSON, or one of"),
        ('{"radius": 3}', 'with the key "pattern"'),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], pattern: str, words: str
) -> None:
    assert words in complaint(capsys, "draw", pattern)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["draw", "window", "--length", "many"], "whole numbers with commas between"),
        (["draw", "window", "--length", "-4"], "`--length` must be at least 0, but is -4"),
        (["draw", "window", "--length", "5", "--marked", "9"], "marked"),
        (["explain", "Window(8, dilation=(1, 2))", "--heads", "3"], "heads"),
        (
            ["explain", "Full()", "--repeat", "0"],
            "argument --repeat: must be a whole number from 1, but is '0'",
        ),
        (["explain", "Full()", "--size", "0"], "argument --size: must be a whole number from 1, but is '0'"),
        (["bench", "attention", "no-such-case"], "no-such-case"),
        (["bench", "attention", "--threads", "0"], "threads"),
        (["bench", "attention", "--short", "--json", "x"], "`--short` must be given without cases"),
        (["bench"], "SUBJECT"),
        (["no-such-verb"], "no-such-verb"),
        (["serch"], "Did you mean search?"),
        (["search", "--modle", "x"], "unrecognized arguments: --modle. Did you mean --mode?"),
        (["-q", "models", "-v"], "--verbose: not allowed with argument --quiet"),
        (["completion", "tcsh"], "invalid choice: 'tcsh'"),
        (["draw", "window", "--out", "nowhere/x.txt"], "`--out` must be a file in a folder that exists"),
    ],
)
def test_a_mistake_is_told_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert words in complaint(capsys, *arguments)


def test_a_reader_that_has_seen_enough_is_no_crash() -> None:
    command = f"{sys.executable} -m longspan draw | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_doctor_speaks_json(capsys: pytest.CaptureFixture[str]) -> None:
    report = json.loads(printed(capsys, "doctor", "--json"))
    assert list(report["backends"]) == ["native", "tiled", "dense"]
    assert report["trial"]["tiled"]["passed"]
    assert report["trial"]["dense"]["error"] < 1e-5


def test_a_pattern_that_is_misspelled_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert complaint(capsys, "draw", "windo").endswith("but is 'windo'. Did you mean window?")
