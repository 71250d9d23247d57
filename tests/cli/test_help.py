"""What the command says of itself: help, examples, exit statuses, and completion by the shell."""

import argparse
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from longspan.cli import EXITS, main, parser
from longspan.cli.completion import commands
from longspan.cli.options import size
from longspan.text.documents import DEFAULT, WHOLE, Limits

ROOT = Path(__file__).parents[2]


def verbs(top: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """All parsers, those of verbs of verbs too."""
    yield top
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from verbs(verb)


ALL = list(verbs(parser()))


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb.prog)
def test_every_help_has_examples_that_parse(verb: argparse.ArgumentParser) -> None:
    text = verb.format_help()
    examples = re.findall(
        r"^  .*?\b(longspan .*)$", text.partition("examples:")[2].split("\n\n")[0], re.MULTILINE
    )
    assert examples
    for example in examples:
        words = shlex.split(re.split(r" [|>] (?!Global)|(?<=bash)\)$", example)[0])[1:]
        if "COMMAND" not in words:
            parser().parse_args(words)


@pytest.mark.parametrize("verb", ALL, ids=lambda verb: verb.prog)
def test_every_verb_takes_quiet_and_verbose(verb: argparse.ArgumentParser) -> None:
    assert {"-q", "--quiet", "-v", "--verbose"} <= set(verb._option_string_actions)


def test_options_may_stand_before_the_verb_and_behind_it() -> None:
    assert parser().parse_args(["-q", "models"]).quiet
    assert parser().parse_args(["models", "-q"]).quiet
    assert parser().parse_args(["bench", "-v", "search"]).verbose
    assert not parser().parse_args(["models"]).quiet


def test_without_arguments_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "examples:" in capsys.readouterr().err


def test_the_page_on_the_command_line_has_every_exit_status() -> None:
    page = (ROOT / "docs/how-to/command-line.md").read_text("utf-8")
    stated = re.findall(r"^  (\d+) ", EXITS, re.MULTILINE)
    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == stated


LIMITED = {
    "index": DEFAULT,
    "search": DEFAULT,
    "eval search": DEFAULT,
    "encode": WHOLE,
    "summarize": WHOLE,
    "rank": WHOLE,
}


@pytest.mark.parametrize(("name", "limits"), LIMITED.items())
def test_the_limits_in_the_help_are_those_that_hold(name: str, limits: Limits) -> None:
    text = " ".join(next(verb for verb in ALL if verb.prog == f"longspan {name}").format_help().split())
    text = text.partition("A file that needs more is not read.")[2]
    found = {name: re.search(rf"--{name} .*?default: ([\d. KMGi]+B?)\)", text) for name in NAMES}
    values = {NAMES[name]: size(match[1]) for name, match in found.items() if match}
    assert values == {"bytes": limits.bytes, "characters": limits.characters} | {
        "seconds": limits.seconds,
        "memory": limits.memory,
    }


NAMES = {
    "max-file-size": "bytes",
    "max-characters": "characters",
    "max-parse-seconds": "seconds",
    "max-parse-memory": "memory",
}


@pytest.mark.parametrize("text", ["", "-1", "0", "many", "1X", "1e9", "9" * 30, "1 2"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be a size such as 500MB"):
        size(text)


def completed(capsys: pytest.CaptureFixture[str], *words: str) -> set[str]:
    """What bash offers for the last of some words."""
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    listed = " ".join(map(shlex.quote, ("longspan", *words)))
    ask = f'COMP_WORDS=({listed}); COMP_CWORD={len(words)}; _longspan; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return set(done.stdout.split())


def test_bash_completes_verbs_options_and_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert completed(capsys, "s") == {"sample", "search", "summarize"}
    assert completed(capsys, "bench", "") == {"attention", "load", "model", "search"}
    assert completed(capsys, "search", "--max-f") == {"--max-file-size"}
    assert completed(capsys, "search", "who pays?", "--mode", "") == {"hybrid", "dense", "bm25"}
    assert completed(capsys, "-q", "eval", "search", "--lim") == {"--limit", "--limit-questions"}
    assert completed(capsys, "encode", "--out", "") == set()  # left to the shell, which knows files
    assert completed(capsys, "search", "x", "") == set()


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_other_shells_read_their_scripts(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", name]) == 0
    script = capsys.readouterr().out
    for command in commands(parser()):
        assert all(word in script for word in command.words.split())
    if (shell := shutil.which(name)) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
