"""What is looked at: a model by its config alone, and a document as it would be given one."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from longspan.checkpoints.families import read_config
from longspan.checkpoints.sentence_transformers import read_modules
from longspan.engine.explain import plural
from longspan.errors import bad, whole
from longspan.formats.files import inside, read_json
from longspan.hub import local_folder, resolve
from longspan.layout import Layout
from longspan.look.presets import PRESETS
from longspan.models.config import EncoderConfig
from longspan.models.longformer import LongformerConfig
from longspan.models.seq2seq import Seq2SeqConfig
from longspan.models.stitched import StitchedConfig

USUAL = 4096
"""Tokens of the document, unless the model reads fewer or others are asked for."""
KINDS = (
    "a folder with config.json, a name on the hub such as allenai/longformer-base-4096, "
    f"or one of {', '.join(PRESETS)}"
)
"""What a model may be given as."""


@dataclass(frozen=True)
class Subject:
    """A model that is looked at."""

    name: str
    config: EncoderConfig

    @property
    def family(self) -> str:
        """
        >>> subject("bigbird-base").family
        'BigBird'
        """
        return type(self.config).__name__.removesuffix("Config")

    def told(self, layout: Layout, beside: int) -> str:
        """The document in words; `beside` are the global tokens of a stream of their own.

        >>> subject("default").told(subject("default").layout(1024), 0)
        'one document of 1,024 tokens with 8 blocks'
        """
        marks = "block" if isinstance(self.config, StitchedConfig) else "global token"
        marked = layout.marked_rows.size + beside
        own = " beside" * bool(beside)
        words = f" with {plural(marked, marks)}{own}" if marked else ""
        return f"one document of {plural(layout.size, 'token')}{words}"

    def layout(self, length: int | None = None, marked: Iterable[int] | None = None) -> Layout:
        """One document; its marked tokens are those that the model's family usually marks, unless given.

        >>> subject("longformer-base").layout(100)
        Layout(100 rows, document of 100, 1 marked)
        """
        size = whole("length", min(self.config.longest, USUAL) if length is None else length, 1)
        if marked is None:
            marked = _usual(self.config, size)
        return Layout.packed([size], marked=[marked])


def subject(model: EncoderConfig | str | Path) -> Subject:
    """A config, or what a name stands for; of a folder or a model on the hub only config.json is read.

    >>> subject("longformer-base").config.radius[0]
    256
    """
    if isinstance(model, EncoderConfig):
        return Subject(type(model).__name__.removesuffix("Config"), model)
    if not isinstance(model, (str, Path)):
        raise bad("model", f"a config or {KINDS}", type(model).__name__)
    name, folder = str(model), local_folder(model)
    if folder is None and name in PRESETS:
        return Subject(name, PRESETS[name])
    if folder is None:
        if name.count("/") != 1:
            raise bad("model", KINDS, name)
        folder = resolve(name, files=_small)
    modules = read_modules(folder)
    place = modules.transformer if modules else folder
    _, config = read_config(read_json(inside(place, "config.json")))
    if isinstance(config, Seq2SeqConfig):  # its decoder sees everything
        config = config.encoder
    return Subject(folder.resolve().name if Path(name).expanduser().is_dir() else name, config)


def names_a_model(text: str) -> bool:
    """Whether a text can mean a model: a preset, a folder, a name in the cache, or a hub name with its slash.

    >>> names_a_model("longformer-base"), names_a_model("org/model"), names_a_model("window")
    (True, True, False)
    """
    return text in PRESETS or "/" in text or local_folder(text) is not None


def _small(names: Iterable[str]) -> list[str]:
    """The files that say what a model is, and nothing that is large."""
    return [
        name for name in names if Path(name).name in ("config.json", "modules.json") and name.count("/") < 2
    ]


def _usual(config: EncoderConfig, length: int) -> Iterable[int]:
    """The first token as for classification, or the beginnings of blocks."""
    if isinstance(config, StitchedConfig):
        return range(0, length, config.block)
    return [0] if isinstance(config, LongformerConfig) else np.arange(0)
