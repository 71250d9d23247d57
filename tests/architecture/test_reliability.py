"""The page on reliability tells the truth: every test it names exists, and no threat is left without one."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reliability.md").read_text()
THREATS = dict(re.findall(r"^\| ([CDKT]\d+) \|(.*)\|$", PAGE, re.MULTILINE))
NAMED = re.findall(r"`((?:tests|csrc)/[\w/.]+?)(?:::(\w+))?`", PAGE)
EXPECTED = {
    *(f"C{number}" for number in range(1, 10)),
    *(f"D{number}" for number in range(1, 7)),
    *(f"K{number}" for number in range(1, 11)),
    *(f"T{number}" for number in range(1, 9)),
}


@cache
def functions(path: str) -> set[str]:
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def named(row: str) -> list[tuple[str, str]]:
    return re.findall(r"`((?:tests|csrc)/[\w/.]+?)(?:::(\w+))?`", row)


@pytest.mark.parametrize(("path", "name"), sorted(set(NAMED)))
def test_a_test_that_is_named_exists(path: str, name: str) -> None:
    assert (ROOT / path).is_file(), path
    if path.endswith(".cpp"):
        built = (ROOT / "CMakeLists.txt").read_text()
        assert Path(path).stem in built or "csrc/tests/*.cpp" in built, "nothing compiles it"
    else:
        assert name.startswith("test_")
        assert name in functions(path)


def test_every_threat_is_listed_and_those_that_need_no_server_have_a_test() -> None:
    assert THREATS.keys() == EXPECTED
    assert "S1 to S12" in PAGE
    assert not [row for row, text in THREATS.items() if not named(text)]


def test_every_promise_has_a_test() -> None:
    promises = PAGE.partition("## Promises")[2].partition("## Threats")[0]
    rows = [row for row in promises.splitlines() if row.startswith("| ")][1:]
    assert len(rows) >= 5
    assert all(named(row) for row in rows)
