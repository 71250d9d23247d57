"""The tree is the architecture: imports point downwards, and nothing turns in a circle."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

LAYER = {
    "_native": 0,
    "errors": 0,
    "progress": 0,
    "shapes": 0,
    "words": 0,
    "layout": 1,
    "formats": 2,
    "hub": 2,
    "native": 2,
    "patterns": 2,
    "engine": 3,
    "text": 3,
    "nn": 4,
    "models": 5,
    "checkpoints": 6,
    "generation": 6,
    "builtin": 7,
    "inspect": 7,
    "tasks": 7,
    "hf": 8,
    "reader": 8,
    "search": 8,
    "training": 8,
    "bench": 9,
    "evaluate": 9,
    "cli": 10,
    "serve": 10,
    "__main__": 11,
}
WITHOUT_TORCH = ("errors", "shapes", "words", "layout", "patterns")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def unit_of(module: str) -> str:
    """The folder or file directly below the package: longspan.engine.plan -> engine."""
    return module.split(".")[1]


def imported(tree: ast.AST, *, late: bool) -> Iterator[str]:
    """The modules a file imports, `late` also inside functions; imports for type checkers do not count."""
    if isinstance(tree, ast.If) and "TYPE_CHECKING" in ast.dump(tree.test):
        return
    if isinstance(tree, ast.FunctionDef) and not late:
        return
    if isinstance(tree, ast.Import):
        yield from (alias.name for alias in tree.names)
    if isinstance(tree, ast.ImportFrom):
        assert tree.level == 0, "imports are written in full"
        for alias in tree.names:
            inner = f"{tree.module}.{alias.name}"
            yield inner if inner in MODULES or inner == "longspan._native" else str(tree.module)
    for child in ast.iter_child_nodes(tree):
        yield from imported(child, late=late)


@cache
def imports_of(module: str, *, late: bool = True) -> tuple[str, ...]:
    return tuple(imported(ast.parse(MODULES[module].read_text()), late=late))


def own_imports(module: str, *, late: bool = True) -> list[str]:
    return [name for name in imports_of(module, late=late) if name.startswith("longspan.")]


@pytest.mark.parametrize("module", [name for name in MODULES if "." in name])
def test_imports_point_downwards_only(module: str) -> None:
    here = unit_of(module)
    assert here in LAYER, f"give {here} a layer"
    for name in own_imports(module):
        there = unit_of(name)
        assert there == here or LAYER[there] < LAYER[here], f"{module} imports {name}, which is not below it"


def test_no_imports_turn_in_a_circle() -> None:
    try:
        TopologicalSorter({module: own_imports(module, late=False) for module in MODULES}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("unit", WITHOUT_TORCH)
def test_layouts_and_patterns_need_no_torch(unit: str) -> None:
    found = [name for name in MODULES if "." in name and unit_of(name) == unit]
    assert found
    assert not [name for module in found for name in imports_of(module) if name.split(".")[0] == "torch"]


def test_the_native_core_has_one_door() -> None:
    assert [name for name in MODULES if "longspan._native" in imports_of(name)] == ["longspan.native"]


def test_the_package_itself_imports_nothing() -> None:
    assert not own_imports("longspan")
