"""The package as its architecture tests see it: modules, what they import, and what they say."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from tokenize import COMMENT, generate_tokens

SOURCE = Path(__file__).parents[2] / "src"
PACKAGE = "longspan"


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


COMPILED = (f"{PACKAGE}._native", f"{PACKAGE}._postings")
MODULES = {_name(path): path for path in sorted((SOURCE / PACKAGE).rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    """The module's syntax tree."""
    return ast.parse(MODULES[module].read_text())


def unit_of(module: str) -> str:
    """The folder or file directly below the package: longspan.engine.plan -> engine."""
    return module.split(".")[1]


def file_of(module: str) -> str:
    """Its file, as seen from the package: longspan.engine.plan -> engine/plan.py."""
    return str(MODULES[module].relative_to(SOURCE / PACKAGE))


@cache
def imports_of(module: str) -> tuple[str, ...]:
    """The modules that a file imports, late imports included; those for type checkers do not count."""
    return tuple(_imports(tree_of(module)))


def own_imports(module: str) -> list[str]:
    """Those of them that are ours, the package itself included."""
    return [name for name in imports_of(module) if name.split(".")[0] == PACKAGE]


def _imports(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "imports are written in full"
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in MODULES or inner in COMPILED else str(node.module)
    for child in ast.iter_child_nodes(node):
        yield from _imports(child)


def code_of(module: str) -> Iterator[str]:
    """The identifiers of a file, the modules it imports, and its strings but for docstrings."""
    documentation = _documentation(tree_of(module))
    for node in ast.walk(tree_of(module)):
        if node in documentation:
            continue
        for field in ("id", "attr", "name", "arg", "module", "value"):
            if isinstance(word := getattr(node, field, None), str):
                yield word


def prose_of(module: str) -> Iterator[str]:
    """The comments of a file and its docstrings without their examples, which are tests."""
    for node in _documentation(tree_of(module)):
        yield _EXAMPLE.sub("", str(node.value))
    for token in generate_tokens(StringIO(MODULES[module].read_text()).readline):
        if token.type == COMMENT:
            yield token.string


_EXAMPLE = re.compile(r"^ *>>>.*(?:\n.*\S.*)*", re.MULTILINE)


def _documentation(tree: ast.Module) -> list[ast.Constant]:
    statements = (node.value for node in ast.walk(tree) if isinstance(node, ast.Expr))
    return [value for value in statements if isinstance(value, ast.Constant)]
