"""What is public: the reference pages are made from it, and judged by it."""

import argparse
import ast
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType

from typing_extensions import get_original_bases

import longspan
from longspan.cli import parser

PACKAGE = Path(longspan.__file__).parent
MODULES = ("data", "export", "hf", "patterns", "training")
"""What users import as modules; all other public names are functions and classes."""
_FENCE = re.compile(r"```python\n(.*?)```", re.DOTALL)
_PLACE = re.compile(r"^\.\. public:: (\S+)\n((?:\n|   .*\n)*)", re.MULTILINE)
_IMPORT = re.compile(r"^from (longspan[\w.]*) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


@cache
def face() -> dict[str, object]:
    """All that `longspan` promises, by the path that users write: `longspan.patterns.Window`."""
    found: dict[str, object] = {}
    for name in longspan.__all__:
        value = getattr(longspan, name)
        if name in MODULES:
            found |= {f"{value.__name__}.{inner}": part for inner, part in public(value).items()}
        else:
            found[f"longspan.{name}"] = value
    return found


def public(module: ModuleType) -> dict[str, object]:
    """The public names of a module: its `__all__`, or else the classes and functions defined in it."""
    if hasattr(module, "__all__"):
        return {name: getattr(module, name) for name in module.__all__}
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }


def modules(pattern: str) -> list[ModuleType]:
    """The modules that a name or a pattern such as `longspan.families.*.model` means."""
    if "*" not in pattern:
        return [import_module(pattern)]
    files = sorted(PACKAGE.parent.glob(pattern.replace(".", "/") + ".py"))
    if not files:
        raise ImportError(f"no module is called {pattern}")
    return [import_module(".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts)) for file in files]


def placed(pages: Iterable[Path]) -> dict[str, object]:
    """What reference pages list as `.. public:: MODULE`, by path: all of a module, or the names below it."""
    found: dict[str, object] = {}
    for page in pages:
        for pattern, lines in _PLACE.findall(page.read_text(encoding="utf-8")):
            with suppress(ImportError, AttributeError):  # which the page itself tells
                for module in modules(pattern):
                    names = lines.split() or public(module)
                    found |= {f"{module.__name__}.{name}": getattr(module, name) for name in names}
    return found


def imported(pages: Iterable[Path]) -> dict[str, object]:
    """What the Python examples of Markdown pages import from modules of Longspan, by path."""
    found: dict[str, object] = {}
    for page in pages:
        for code in _FENCE.findall(page.read_text(encoding="utf-8")):
            for module, several, line in _IMPORT.findall(code):
                for name in re.findall(r"\w+", re.sub(r"#.*", "", several or line)):
                    try:
                        found[f"{module}.{name}"] = getattr(import_module(module), name)
                    except (ImportError, AttributeError) as error:
                        raise ImportError(f"{page.name} imports {module}.{name}: {error}") from error
    return {path: value for path, value in sorted(found.items()) if not isinstance(value, ModuleType)}


def commands() -> dict[str, argparse.ArgumentParser]:
    """The commands of the program `longspan`, as the parsers of their options."""
    found: dict[str, argparse.ArgumentParser] = {}
    for action in parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= action.choices
    return found


def members(owner: type) -> dict[str, object]:
    """The public methods and properties of a class, without those that a public base describes."""
    bases = [base for base in owner.__mro__[1:] if base in face().values()]
    described = {name for base in bases for name in vars(base)}
    kinds = (property, cached_property, classmethod, staticmethod)
    return {
        name: value
        for name, value in vars(owner).items()
        if not name.startswith("_")
        and name not in described
        and (inspect.isfunction(value) or isinstance(value, kinds))
    }


def results(values: Iterable[object]) -> list[type]:
    """The classes of Longspan that users meet as results of `values`, as their fields, or as options."""
    known = {value for value in values if inspect.isclass(value)}
    found, queue = [], list(values)
    while queue:
        for annotation in _met(queue.pop()):
            for kind in _classes(annotation):
                if kind not in known and kind.__module__.startswith("longspan"):
                    known.add(kind)
                    found.append(kind)
                    queue.append(kind)
    return sorted(found, key=lambda kind: (kind.__module__, kind.__qualname__))


def problems(path: str, value: object) -> Iterator[str]:
    """What a reader of the reference would miss: docstrings, types of parameters and results."""
    if isinstance(value, ModuleType):
        yield f"{path} is a module, which hides what has its name"
    if not inspect.getdoc(value):
        yield f"{path} has no docstring"
    if inspect.isclass(value):
        for name, member in members(value).items():
            if not any(getattr(vars(base).get(name), "__doc__", None) for base in value.__mro__):
                yield f"{path}.{name} has no docstring"
            yield from _untyped(f"{path}.{name}", _function(member))
        yield from _untyped(path, vars(value).get("__init__"))
    else:
        yield from _untyped(path, value)


def _untyped(path: str, function: object) -> Iterator[str]:
    if not inspect.isfunction(function) or not function.__module__.startswith("longspan"):
        return  # made by dataclass, NamedTuple or Protocol
    signature = inspect.signature(function)
    for name, parameter in signature.parameters.items():
        if parameter.annotation is parameter.empty and name not in ("self", "cls"):
            yield f"{path}: the parameter {name} has no type"
    if signature.return_annotation is signature.empty:
        yield f"{path} has no type of its result"


def _function(member: object) -> object:
    """The function behind a method or property."""
    for name in ("__func__", "fget", "func"):
        member = getattr(member, name, None) or member
    return member


def _met(value: object) -> Iterator[object]:
    """The annotations of what a user gets from a function, or from the methods and fields of a class."""
    if inspect.isclass(value):
        yield from (part for base in get_original_bases(value) for part in typing.get_args(base))
        yield from _hints(value).values()
        for member in members(value).values():
            yield from _met(_function(member))
    elif inspect.isfunction(value):
        for overload in typing.get_overloads(value) or [value]:
            hints = _hints(overload)
            yield hints["return"]
            yield from (hint for hint in hints.values() if typing.get_origin(hint) is typing.Unpack)


def _hints(value: Callable[..., object]) -> dict[str, object]:
    """Annotations, also by names that a module imports for type checkers only."""
    if not inspect.isclass(value):
        return typing.get_type_hints(value, None, _for_type_checkers(value.__module__))
    found: dict[str, object] = {}
    for owner in value.__mro__:
        if owner.__module__.startswith("longspan"):
            names = _for_type_checkers(owner.__module__)
            found |= inspect.get_annotations(owner, locals=names, eval_str=True)
    return found


@cache
def _for_type_checkers(module: str) -> dict[str, object]:
    found = {}
    for node in ast.parse(inspect.getsource(sys.modules[module])).body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    source = import_module(line.module)
                    found.update(
                        {each.asname or each.name: getattr(source, each.name) for each in line.names}
                    )
    return found


def _classes(annotation: object) -> Iterator[type]:
    if inspect.isclass(annotation):
        yield annotation
    origin = typing.get_origin(annotation)
    if origin is not None:
        yield from _classes(origin)
    for argument in typing.get_args(annotation):
        yield from _classes(argument)
