"""Which parts of a page a browser does not show, as far as tags and attributes say so.

Style sheets are not applied. An element ends where browsers end it: at its end tag, where another one takes
its place, or with the element around it.
"""

import re
from collections import Counter

# fmt: off
UNSEEN = frozenset((
    "script", "style", "template", "noscript", "noframes", "svg", "iframe", "audio", "video", "canvas",
    "datalist", "rp",
))
"""Elements whose text is never shown. That of <object> is, where the object cannot be."""
BLOCKS = frozenset((
    "p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "table", "blockquote", "pre", "figure", "hr",
    "section", "article", "form",
))
LINES = frozenset((
    "html", "head", "body", "div", "li", "dt", "dd", "tr", "br", "header", "footer", "main", "nav", "aside",
    "address", "caption", "figcaption", "fieldset", "legend", "option", "textarea", "title", "details",
    "summary", "dialog",
))
VOID = frozenset((
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
))
CONTAINERS = (BLOCKS | LINES | {"td", "th", "thead", "tbody", "tfoot", "select", "optgroup", "object"}) - VOID
# fmt: on
_CLOSING_P = (BLOCKS | {"div", "li", "dt", "dd", "header", "footer", "main", "nav", "aside", "address"}) | {
    "figcaption",
    "fieldset",
    "details",
    "dialog",
}
_CELLS = frozenset(("td", "th", "tr", "tbody", "tfoot"))
CLOSED_BY = {
    "p": _CLOSING_P,
    "svg": _CLOSING_P | {"span", "img", "b", "i", "body", "br"},
    "li": frozenset(("li",)),
    "dt": frozenset(("dt", "dd")),
    "dd": frozenset(("dt", "dd")),
    "tr": frozenset(("tr", "tbody", "tfoot")),
    "td": _CELLS,
    "th": _CELLS,
    "option": frozenset(("option", "optgroup")),
}
"""Elements that need no end tag, and what begins in their place."""
_HIDING_STYLE = re.compile(
    r"(?:^|;)\s{0,9}(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}(?:hidden|collapse))\b",
    re.IGNORECASE,
)

Attributes = list[tuple[str, str | None]]


def is_hidden(tag: str, attributes: Attributes) -> bool:
    """Whether an element says itself that it is not shown."""
    if tag == "dialog" and all(name != "open" for name, _ in attributes):
        return True
    for name, value in attributes:
        if name == "hidden" and (value or "").lower() != "until-found":
            return True
        if name == "style" and _HIDING_STYLE.search(value or ""):
            return True
    return False


class Hidden:
    """The element that hides what is inside of it, and the elements that are open there."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._count: Counter[str] = Counter()
        self._outside: Counter[str] = Counter()  # elements that are open around it
        self.counts = False
        "Whether what is hidden would be text if it were shown."

    def __bool__(self) -> bool:
        return bool(self._stack)

    def start(self, tag: str, attributes: Attributes) -> bool:
        """An element begins; whether it is hidden."""
        while self._stack and tag in CLOSED_BY.get(self._stack[-1], ()):
            self._pop()
        if tag in VOID:
            return bool(self._stack)
        if self._stack:
            if tag == self._stack[0] or tag in CONTAINERS:
                self._push(tag)
            return True
        told = bool(attributes or tag == "dialog") and is_hidden(tag, attributes)
        if told or tag in UNSEEN:
            self.counts = told
            self._push(tag)
            return True
        if tag in CONTAINERS:
            self._outside[tag] += 1
        return False

    def end(self, tag: str) -> bool:
        """An element ends; whether that was a hidden one."""
        if self._count[tag]:
            while self._pop() != tag:
                pass
            return True
        if self._outside[tag]:
            self._outside[tag] -= 1
            if self._stack and tag not in ("body", "html"):
                self._stack.clear()
                self._count.clear()
        return bool(self._stack)

    def _push(self, tag: str) -> None:
        self._stack.append(tag)
        self._count[tag] += 1

    def _pop(self) -> str:
        tag = self._stack.pop()
        self._count[tag] -= 1
        return tag
