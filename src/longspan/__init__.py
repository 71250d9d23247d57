"""Longspan: transformers that read whole long documents, on one sparse attention engine.

Importing this package does no work: every public name is loaded on first use.

>>> import longspan as ls
>>> ls.Layout.packed([4096, 771]).size
4867
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from longspan._version import __version__ as __version__

if TYPE_CHECKING:
    from longspan import hf, patterns
    from longspan.engine.call import attention, attention_weights
    from longspan.engine.dropout import Dropout
    from longspan.engine.labels import ClippedDistance
    from longspan.engine.merge import merge
    from longspan.engine.plan import Plan, plan
    from longspan.engine.terms import RelativeKeys, ScoreTable
    from longspan.errors import BackendError, InputError, LongspanError
    from longspan.inspect.picture import draw
    from longspan.inspect.report import explain
    from longspan.layout import Layout
    from longspan.lengthening.lengthen import lengthen
    from longspan.reader import Reader, load
    from longspan.search.index import Index

_HOME = {
    "BackendError": "longspan.errors",
    "ClippedDistance": "longspan.engine.labels",
    "Dropout": "longspan.engine.dropout",
    "Index": "longspan.search.index",
    "InputError": "longspan.errors",
    "Layout": "longspan.layout",
    "LongspanError": "longspan.errors",
    "Plan": "longspan.engine.plan",
    "Reader": "longspan.reader",
    "RelativeKeys": "longspan.engine.terms",
    "ScoreTable": "longspan.engine.terms",
    "attention": "longspan.engine.call",
    "attention_weights": "longspan.engine.call",
    "draw": "longspan.inspect.picture",
    "explain": "longspan.inspect.report",
    "lengthen": "longspan.lengthening.lengthen",
    "load": "longspan.reader",
    "merge": "longspan.engine.merge",
    "plan": "longspan.engine.plan",
}

__all__ = [
    "BackendError",
    "ClippedDistance",
    "Dropout",
    "Index",
    "InputError",
    "Layout",
    "LongspanError",
    "Plan",
    "Reader",
    "RelativeKeys",
    "ScoreTable",
    "attention",
    "attention_weights",
    "draw",
    "explain",
    "hf",
    "lengthen",
    "load",
    "merge",
    "patterns",
    "plan",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use and keep it, so that the second use costs nothing."""
    if name in ("hf", "patterns"):
        value: Any = import_module(f"longspan.{name}")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'longspan' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
