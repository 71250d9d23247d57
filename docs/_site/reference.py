"""Reference pages from lists of public names; what is missing there or undocumented is a warning."""

import inspect
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import public_api

log = logging.getLogger(__name__)


class Reference(SphinxDirective):
    """A directive that documents public names by autodoc, and warns of what they lack."""

    def run(self) -> list[nodes.Node]:
        try:
            text = self.text()
        except (ImportError, AttributeError) as error:
            raise self.error(str(error)) from error
        return self.parse_text_to_nodes(text, allow_section_headings=True)

    def text(self) -> str:
        """The page in reStructuredText."""
        raise NotImplementedError

    def described(
        self, entries: Mapping[str, object], *, headings: bool = False, fields: bool = False
    ) -> str:
        """The entries as reStructuredText, each module below a heading of its own if there are `headings`."""
        text, above = "", ""
        for path, value in entries.items():
            for problem in public_api.problems(path, value):
                log.warning(problem, location=self.get_location())
            module = path.rpartition(".")[0]
            if headings and module != above:
                text += heading(module)
            text += entry(path, value, fields=fields)
            above = module
        return text

    def placed(self) -> dict[str, object]:
        return public_api.placed((Path(self.env.srcdir) / "reference").glob("*.rst"))

    def imported(self) -> dict[str, object]:
        """What the guide imports and no page lists."""
        listed = {id(value) for value in self.placed().values()}
        found = public_api.imported(guide(self.env)).items()
        return {path: value for path, value in found if id(value) not in listed}


class Public(Reference):
    """`.. public:: MODULE` documents the public names of a module, or those that the content lists.

    A module may be a pattern, `longspan.families.*.model`; each one that it means has a heading then.
    """

    required_arguments = 1
    has_content = True

    def text(self) -> str:
        pattern, names, entries = self.arguments[0], " ".join(self.content).split(), {}
        for module in public_api.modules(pattern):
            for name in names or public_api.public(module):
                entries[f"{module.__name__}.{name}"] = getattr(module, name)
        return self.described(entries, headings="*" in pattern)


class Imported(Reference):
    """`.. imported::` documents what the examples of the guide import and no other page lists."""

    def text(self) -> str:
        return self.described(self.imported(), headings=True)


class Results(Reference):
    """`.. results::` documents the classes that public functions return, if no other page does."""

    def text(self) -> str:
        listed = {id(value) for value in (self.placed() | self.imported()).values()}
        kinds = public_api.results(public_api.face().values())
        entries = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in kinds if id(kind) not in listed}
        return self.described(entries, fields=True)


class Commands(Reference):
    """`.. commands::` shows the help of every command."""

    def text(self) -> str:
        text = ""
        for name, verb in public_api.commands().items():
            shown = verb.format_help().replace("\n", "\n   ")
            text += f"\nlongspan {name}\n{'=' * (len(name) + 9)}\n\n.. code-block:: text\n\n   {shown}\n"
        return text


def heading(module: str) -> str:
    """The title of a section, and what the module says of itself."""
    return f"\n{module}\n{'=' * len(module)}\n\n{inspect.getdoc(import_module(module)) or ''}\n\n"


def entry(path: str, value: object, *, fields: bool) -> str:
    """The directive of autodoc for one name; `fields` also lists those that have no help of their own."""
    if not inspect.isclass(value):
        return f"\n.. {'autofunction' if callable(value) else 'autodata'}:: {path}\n"
    kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
    names = [name for name in inspect.get_annotations(value) if not name.startswith("_")]
    members = ", ".join([*names, *public_api.members(value)])
    ours = [base for base in value.__bases__ if base.__module__.startswith("longspan")]
    options = {
        f":members: {members}": bool(members),
        ":undoc-members:": fields,
        ":show-inheritance:": any(not base.__name__.startswith("_") for base in ours),
    }
    chosen = [f"   {option}\n" for option, wanted in options.items() if wanted]
    return f"\n.. {kind}:: {path}\n{''.join(chosen)}"


def guide(env: BuildEnvironment) -> list[Path]:
    """The Markdown pages of the site, and the README."""
    return [*sorted(Path(env.srcdir).rglob("*.md")), Path(env.srcdir).parent / "README.md"]


def complete(_: Sphinx, env: BuildEnvironment) -> Iterable[str]:
    """Warn of every public name that no page documents."""
    for path in public_api.face():
        if path not in env.domains.python_domain.objects:
            log.warning("%s is in no page of the reference", path)
    return []


def own_words(_app: Sphinx, _what: str, name: str, value: object, _options: object, lines: list[str]) -> None:
    """Show a module's `forward` without the general words that torch has for every one."""
    if name.endswith(".forward") and not value.__doc__:
        lines.clear()


def own_signature(
    _app: Sphinx, what: str, _name: str, _value: object, options: Any, arguments: str | None, result: str
) -> tuple[str, str] | None:
    """Show no private parameters, and none at all for results, whose fields are listed and nobody makes."""
    if not arguments:
        return None
    if what == "class" and options.undoc_members:
        return "", ""
    return re.sub(r", _\w+: [^=]*= ?<factory>", "", arguments), result


def setup(app: Sphinx) -> dict[str, Any]:
    for directive in (Public, Imported, Results, Commands):
        app.add_directive(directive.__name__.lower(), directive)
    app.connect("autodoc-process-docstring", own_words)
    app.connect("autodoc-process-signature", own_signature)
    app.connect("env-check-consistency", complete)
    return {"parallel_read_safe": False}
