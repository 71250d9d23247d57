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
    from longspan import data as data
    from longspan import export as export
    from longspan import hf as hf
    from longspan import patterns as patterns
    from longspan import training as training
    from longspan.engine.call import attention as attention
    from longspan.engine.call import attention_weights as attention_weights
    from longspan.engine.dropout import Dropout as Dropout
    from longspan.engine.labels import ClippedDistance as ClippedDistance
    from longspan.engine.merge import merge as merge
    from longspan.engine.plan import Plan as Plan
    from longspan.engine.plan import plan as plan
    from longspan.engine.terms import RelativeKeys as RelativeKeys
    from longspan.engine.terms import ScoreTable as ScoreTable
    from longspan.errors import BackendError as BackendError
    from longspan.errors import InputError as InputError
    from longspan.errors import LongspanError as LongspanError
    from longspan.inspect.picture import draw as draw
    from longspan.inspect.report import explain as explain
    from longspan.layout import Layout as Layout
    from longspan.lengthening.lengthen import lengthen as lengthen
    from longspan.loading import load as load
    from longspan.reader import Reader as Reader
    from longspan.recipes.finetune import finetune as finetune
    from longspan.search.index import Index as Index

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
    "finetune": "longspan.recipes.finetune",
    "lengthen": "longspan.lengthening.lengthen",
    "load": "longspan.loading",
    "merge": "longspan.engine.merge",
    "plan": "longspan.engine.plan",
}

_MODULES = ("data", "export", "hf", "patterns", "training")

__all__ = sorted([*_MODULES, *_HOME])


def __getattr__(name: str) -> Any:
    """Load a public name on first use and keep it, so that the second use costs nothing."""
    if name in _MODULES:
        value: Any = import_module(f"longspan.{name}")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'longspan' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
