"""The headings of source code: the lines that define classes and functions."""

import re
from itertools import islice

from longspan.text.files.parsed import MOST_HEADINGS, Heading, as_heading

# fmt: off
BRACES = (  # C and its heirs, where a function has no keyword
    ".c", ".h", ".cc", ".cpp", ".cxx", ".hpp", ".hxx", ".cu", ".cuh", ".m", ".mm", ".java", ".cs", ".d",
)
# fmt: on
_MODIFIERS = (
    "export|default|declare|public|private|protected|internal|static|final|abstract|async|unsafe|override|open"
    "|sealed|data|inline|virtual|constexpr|const|extern|partial|readonly|local|pub(?:\\([a-z ]{1,20}\\))?"
)
_KEYWORDS = (
    "class|interface|enum|struct|union|module|trait|impl|record|object|protocol|extension|package"
    "|def|defp|defmodule|fun|func|fn|function|sub|proc|procedure|subroutine|program|type|macro_rules!"
    "|contract|resource|variable|theorem|lemma"
)
_KEYWORD = re.compile(
    rf"\n(?P<indent>[ \t]{{0,40}}+)(?P<all>(?:(?:{_MODIFIERS})[ \t]{{1,4}}){{0,5}}+(?:{_KEYWORDS})"
    r"(?:[ \t]{1,4}|(?=[<(]))[^\n]{1,200})"
)
# At the left margin, or after a modifier: a type, a name and a bracket, and no semicolon at the end.
_FUNCTION = re.compile(
    r"\n(?P<indent>(?:[ \t]{1,12}(?=(?:public|private|protected|internal|static|override)\b))?)"
    r"(?P<all>[A-Za-z_][\w \t*&:<>,~\[\]]{0,120}[ \t*&]~?[\w:]{1,80}[ \t]?\([^;\n]{0,200}(?:\n|\Z))"
)
_NO_DEFINITION = re.compile(r"(?:return|else|if|for|while|switch|case|using|typedef|throw|new|delete)\b")
_BODY = re.compile(r"[ \t]*(?:\{.*|=>.*|:[ \t]*(?:#.*)?|\bwhere\b.*|=[ \t]*)\Z", re.DOTALL)


def signatures(text: str, suffix: str) -> tuple[Heading, ...]:
    """The definitions in a file of source code, nested by their indentation.

    >>> code = "class Reader(Base):\\n    def read(self, path: str) -> str:\\n        return path\\n"
    >>> [(heading.level, heading.text) for heading in signatures(code, ".py")]
    [(1, 'class Reader(Base)'), (2, 'def read(self, path: str) -> str')]
    """
    shifted = "\n" + text
    matches = list(islice(_KEYWORD.finditer(shifted), MOST_HEADINGS))
    if suffix in BRACES:
        known = {match.start() for match in matches}
        functions = islice(_FUNCTION.finditer(shifted), MOST_HEADINGS)
        matches += [match for match in functions if match.start() not in known]
    headings = []
    margins: list[int] = []
    for match in sorted(matches, key=re.Match.start):
        line = match["all"]
        if _NO_DEFINITION.match(line) or line.rstrip().endswith((";", ",", "=")):
            continue
        margin = len(match["indent"].expandtabs(4))
        while margins and margins[-1] >= margin:
            margins.pop()
        margins.append(margin)
        title = as_heading(_BODY.sub("", line.rstrip()).rstrip("( "))
        headings.append(Heading(match.start("all") - 1, len(margins), title))
    return tuple(headings)
