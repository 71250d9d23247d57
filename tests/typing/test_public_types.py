"""The public face is typed: a user's script passes mypy and pyright, and no `Any` is shown to its editor."""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import longspan
import public_api

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SCRIPT = (HERE / "user_script.py").read_text()
UNTYPED = re.compile(r"\b(?:Any|Unknown)\b")
# Longspan's arrays of any number of dimensions, which numpy cannot write without Any.
ARRAY = re.compile(
    r"(?:numpy\.)?ndarray\[(?:builtins\.)?tuple\[(?:typing\.)?Any, \.\.\.\], "
    r"(?:numpy\.)?dtype\[(?:numpy\.)?(?:signedinteger\[(?:typing\.)?Any\]|floating\[(?:typing\.)?Any\]|bool)\]\]"
)


def lines_with_any(revealed: list[tuple[int, str]]) -> list[str]:
    return [f"{line}: {kind}" for line, kind in revealed if UNTYPED.search(ARRAY.sub("array", kind))]


def test_mypy_accepts_the_script_and_shows_no_any() -> None:
    cache_dir = ROOT / "build/mypy-user"  # torch is read once
    options = ("--strict", "--config-file=", "--follow-imports=silent", "--cache-dir", str(cache_dir))
    command = [sys.executable, "-m", "mypy", *options, str(HERE / "user_script.py")]
    environment = os.environ | {"MYPYPATH": str(ROOT / "src")}
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    revealed = re.findall(r":(\d+): note: Revealed type is \"(.*)\"", result.stdout)
    errors = [line for line in result.stdout.splitlines() if ": error: " in line]
    assert not errors, "\n".join(errors)
    assert len(revealed) == SCRIPT.count(" reveal_type("), result.stdout + result.stderr
    assert not lines_with_any([(int(line), kind) for line, kind in revealed])


def test_pyright_accepts_the_script_and_shows_no_any() -> None:
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--outputjson",
        "--pythonpath",
        sys.executable,
        "-p",
        str(HERE),
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    told = json.loads(result.stdout)["generalDiagnostics"]
    places = [(each["range"]["start"]["line"] + 1, each["severity"], each["message"]) for each in told]
    errors = [f"{line}: {message}" for line, severity, message in places if severity != "information"]
    assert not errors, "\n".join(errors)
    revealed = [(line, message.rpartition(" is ")[2]) for line, _, message in places]
    assert len(revealed) == SCRIPT.count(" reveal_type("), result.stdout + result.stderr
    assert not lines_with_any(revealed)


def test_any_is_noticed_but_for_arrays() -> None:
    array = "ndarray[tuple[Any, ...], dtype[signedinteger[Any]]]"
    assert not lines_with_any([(1, f"tuple[int, {array}]"), (2, "Anything")])
    assert lines_with_any([(1, f"list[Any] | {array}"), (2, "Unknown"), (3, "dict[str, typing.Any]")]) == [
        f"1: list[Any] | {array}",
        "2: Unknown",
        "3: dict[str, typing.Any]",
    ]


def test_the_script_uses_every_name_and_verb() -> None:
    verbs = [f".{verb}" for owner in (longspan.Reader, longspan.Index) for verb in public_api.members(owner)]
    aside = {".folder", ".model", ".close", ".query_prompt_name", ".document_prompt_name"}  # plain facts
    names = [f"longspan.{name}" for name in longspan.__all__ if name not in ("patterns", "Plan")]
    missing = [name for name in {*names, *verbs} - aside if not re.search(rf"{re.escape(name)}\b", SCRIPT)]
    assert not missing


@cache
def public() -> dict[str, Callable[..., object]]:
    """All public functions and classes, and the classes of what they return, by path."""
    face = {path: value for path, value in public_api.face().items() if callable(value)}
    kinds = public_api.results(face.values())
    return {**face, **{f"{kind.__module__}.{kind.__qualname__}": kind for kind in kinds}}


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(Path(str(sys.modules[module].__file__)).read_text())


def shown(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """The annotations of fields and signatures, but for private ones and those that overloads hide."""
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    overloads = [node for node in functions if "overload" in map(ast.unparse, node.decorator_list)]
    overloaded = {node.name for node in overloads}
    for node in body:
        if isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target), ast.unparse(node.annotation)
    for node in functions:
        if node in overloads or node.name not in overloaded:
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg) and argument.annotation:
                    yield f"{node.name}({argument.arg})", ast.unparse(argument.annotation)
            yield node.name, ast.unparse(node.returns) if node.returns else ""


@pytest.mark.parametrize("path", public())
def test_no_signature_has_any(path: str) -> None:
    value, name = public()[path], path.rpartition(".")[2]
    body = [node for node in tree_of(value.__module__).body if getattr(node, "name", "") == name]
    assert body
    if isinstance(value, type):
        body = [node for owner in body if isinstance(owner, ast.ClassDef) for node in owner.body]
    private = re.compile(r"_(?!_)")
    found = [
        f"{place}: {kind}" for place, kind in shown(body) if UNTYPED.search(kind) and not private.match(place)
    ]
    assert not found


def test_any_in_fields_and_overloads_is_noticed_and_behind_overloads_is_not() -> None:
    source = """
class Sample:
    field: dict[str, Any]
    @overload
    def verb(self, text: Any) -> str: ...
    def verb(self, *texts: Any) -> Any: ...
    def plain(self, **options: Any) -> "Any": ...
"""
    owner = ast.parse(source).body[0]
    assert isinstance(owner, ast.ClassDef)
    assert [place for place, kind in shown(owner.body) if UNTYPED.search(kind)] == [
        "field",
        "verb(text)",
        "plain(options)",
        "plain",
    ]
