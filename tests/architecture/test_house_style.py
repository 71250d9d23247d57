"""House rules that a program can check."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "benchmarks", "csrc", "docs", ".ci")
ENDINGS = {".py", ".pyi", ".cpp", ".h", ".md", ".toml", ".txt", ".yaml", ".svg", ".json", ""}
FILES = sorted(
    path
    for folder in [ROOT, *(ROOT / name for name in FOLDERS)]
    for path in (folder.iterdir() if folder == ROOT else folder.rglob("*"))
    if path.is_file() and path.suffix in ENDINGS and path.name != ".git" and "__pycache__" not in path.parts
)
CODE = [path for path in FILES if path.suffix == ".py" and "tests" not in path.parts]
NATIVE = [path for path in FILES if path.suffix in {".cpp", ".h"}]
# The brackets keep this file from containing what it forbids.
FORBIDDEN = re.compile(
    r"\b(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b"  # left over
    r"|/wor[k]/|\.\./share[d]|pypi\.or[g]|pythonhoste[d]|download\.pytorc[h]"  # of one workplace or registry
)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


LONG: tuple[str, ...] = ()
"""Files of more than 300 lines; none may have more than 400."""


@pytest.mark.parametrize("path", CODE, ids=named)
def test_a_python_file_is_short_enough_to_read(path: Path) -> None:
    assert path.read_text().count("\n") <= (400 if named(path) in LONG else 300)


@pytest.mark.parametrize("path", NATIVE, ids=named)
def test_a_native_file_is_short_enough_to_read(path: Path) -> None:
    assert path.read_text().count("\n") <= 500


@pytest.mark.parametrize("path", CODE, ids=named)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, node.name


def test_nothing_is_left_over_and_nothing_points_elsewhere() -> None:
    found = [f"{named(path)}: {match[0]}" for path in FILES for match in FORBIDDEN.finditer(path.read_text())]
    assert not found


def test_links_in_the_documents_lead_somewhere() -> None:
    broken = [
        f"{named(page)}: {link}"
        for page in FILES
        if page.suffix == ".md"
        for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert not broken
