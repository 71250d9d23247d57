"""What is inspected: a model by its config alone, or patterns; and a document as it would be given one."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from longspan.checkpoints.sentence_transformers import read_modules
from longspan.errors import bad, whole
from longspan.families.config import EncoderConfig
from longspan.families.registry import presets, read_config
from longspan.formats.files import inside, read_json
from longspan.hub import DEFAULT, local_folder, resolve
from longspan.inspect.stack import Stack, stack
from longspan.layout import Layout
from longspan.patterns.base import Pattern
from longspan.words import plural

USUAL = 4096
"""Tokens of the document, unless the model reads fewer or others are asked for."""
KINDS = f"a folder with config.json, a name on the hub, or one of {', '.join(presets())}"
"""What a model may be given as."""


@dataclass(frozen=True)
class Subject:
    """A model, or patterns alone."""

    name: str
    config: EncoderConfig | Stack

    @property
    def family(self) -> str:
        """
        >>> subject("bigbird-base").family
        'BigBird'
        """
        return "" if isinstance(self.config, Stack) else self.config.family

    @property
    def sizes(self) -> str:
        """The layers and heads in words.

        >>> subject("bigbird-base").sizes
        'BigBird, 12 layers of width 768, 12 heads'
        """
        layers, heads = plural(self.config.layers, "layer"), plural(self.config.heads, "head")
        if isinstance(self.config, Stack):
            return f"{layers}, {heads} of size {self.config.head_size}"
        return f"{self.family}, {layers} of width {self.config.width:,}, {heads}"

    def describe(self, layout: Layout, beside: int) -> str:
        """The documents in words; `beside` are the global tokens of a stream of their own.

        >>> subject("default").describe(subject("default").layout(1024), 0)
        'one document of 1,024 tokens with 8 blocks'
        """
        marked = layout.marked_rows.size + beside
        own = " beside" * bool(beside)
        words = f" with {plural(marked, self.config.mark_name)}{own}" if marked else ""
        tokens, many = plural(layout.size, "token"), layout.documents != 1
        rows = f"{tokens} in {plural(layout.documents, 'document')}" if many else f"one document of {tokens}"
        return f"{rows}{words}"

    def layout(self, length: int | Layout | None = None, marked: Iterable[int] | None = None) -> Layout:
        """One document; its marked tokens are those that the model's family usually marks, unless given.

        >>> subject("longformer-base").layout(100)
        Layout(100 rows, document of 100, 1 marked)
        """
        if isinstance(length, Layout):
            if marked is not None:
                raise bad("marked", "said by the layout itself", marked)
            whole("length", length.size, 1)
            return length
        size = whole("length", min(self.config.longest, USUAL) if length is None else length, 1)
        if marked is None:
            marked = self.config.usual_marks(size)
        return Layout.packed([size], marked=[marked])


def subject(
    model: EncoderConfig | Pattern | Sequence[Pattern] | str | Path,
    heads: int | None = None,
    head_size: int | None = None,
) -> Subject:
    """A config, patterns, or what a name stands for; of a folder or a hub model only config.json is read.

    >>> subject("longformer-base").config.heads
    12
    """
    if isinstance(model, Pattern):
        model = [model]
    if isinstance(model, Sequence) and not isinstance(model, str):
        layers = stack(model, heads, head_size)
        return Subject(layers.name, layers)
    for name, value in (("heads", heads), ("head_size", head_size)):
        if value is not None:
            raise bad(name, "given for patterns only, as a model has its own", value)
    if not isinstance(model, (str, Path)):
        if not hasattr(model, "attention"):
            raise bad("model", f"a config, patterns, or {KINDS}", type(model).__name__)
        return Subject(model.family, model)
    name, folder = str(model), local_folder(model)
    if model == DEFAULT or (folder is None and name in presets()):
        return Subject(name, presets()[name].encoder)
    if folder is None:
        if name.count("/") != 1:
            raise bad("model", KINDS, name)
        folder = resolve(name, files=_small)
    modules = read_modules(folder)
    place = modules.transformer if modules else folder
    _, config = read_config(read_json(inside(place, "config.json")))
    shown = folder.resolve().name if Path(name).expanduser().is_dir() else name
    return Subject(shown, config.encoder)  # a decoder sees everything


def names_a_model(text: str) -> bool:
    """Whether a text can mean a model: a preset, a folder, a name in the cache, or a hub name with its slash.

    >>> names_a_model("longformer-base"), names_a_model("org/model"), names_a_model("window")
    (True, True, False)
    """
    return text in presets() or "/" in text or local_folder(text) is not None


def _small(names: Iterable[str]) -> list[str]:
    """The files that say what a model is, and nothing that is large."""
    return [
        name for name in names if Path(name).name in ("config.json", "modules.json") and name.count("/") < 2
    ]
