"""The tree is the architecture: imports point downwards, and nothing turns in a circle."""

from graphlib import CycleError, TopologicalSorter

import pytest

from architecture.tree import MODULES, PACKAGE, imports_of, own_imports, unit_of

LAYERS = (
    ("_native", "_postings", "_version", "errors", "html", "progress", "shapes", "words"),
    ("metrics", "shuffled", "site", "workers"),
    ("formats", "hub", "layout", "native"),
    ("patterns", "text"),
    ("corpus", "datasets", "engine", "structure"),
    ("nn",),
    ("families",),
    ("generation", "hf", "pipeline"),
    ("tasks",),
    ("checkpoints",),
    ("inspect", "lengthening"),
    ("builtin",),
    ("text_model",),
    ("embedder",),
    ("token_embedder",),
    ("reader",),
    ("data", "export", "loading"),
    ("search", "training"),
    ("recipes",),
    ("bench", "evaluate"),
    ("integrations",),
    ("cli", "serve", "st"),
    ("__main__",),
)
"""From the ground up; a unit imports from those below it, never from its own layer."""
LAYER = {unit: number for number, units in enumerate(LAYERS) for unit in units}
WITHOUT_TORCH = ("errors", "shapes", "words", "metrics", "site", "layout", "patterns", "datasets")
INSIDE = [module for module in MODULES if module != PACKAGE]


@pytest.mark.parametrize("module", INSIDE)
def test_imports_point_downwards_only(module: str) -> None:
    here = unit_of(module)
    assert here in LAYER, f"give {here} a layer"
    for name in own_imports(module):
        assert name != PACKAGE, "inside the package a name is imported from its own module"
        there = unit_of(name)
        assert there == here or LAYER[there] < LAYER[here], f"{name} is not below {here}"


def test_no_imports_turn_in_a_circle() -> None:
    try:
        TopologicalSorter({module: own_imports(module) for module in MODULES}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize("unit", WITHOUT_TORCH)
def test_layouts_and_patterns_need_no_torch(unit: str) -> None:
    modules = [module for module in INSIDE if unit_of(module) == unit]
    assert modules
    assert not [name for module in modules for name in imports_of(module) if name.split(".")[0] == "torch"]


@pytest.mark.parametrize(("compiled", "door"), [("_native", "native"), ("_postings", "search.words")])
def test_a_compiled_module_has_one_door(compiled: str, door: str) -> None:
    assert [name for name in MODULES if f"{PACKAGE}.{compiled}" in imports_of(name)] == [f"{PACKAGE}.{door}"]


def test_the_package_itself_imports_only_its_version() -> None:
    assert own_imports(PACKAGE) == ["longspan._version"]
