"""The model of an index: loaded when first needed, and the same that the index was built with."""

import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.errors import LongspanError, bad
from longspan.search.database import Database
from longspan.search.library import model_name
from longspan.search.update import fingerprint, stamp_of

if TYPE_CHECKING:
    from longspan.reader import Reader

UNNAMED = "a Reader"
"""What an index knows a model by that has no name."""


class OwnModel:
    """The model that is given, or the one that the database names."""

    def __init__(self, db: Database, given: "str | Path | Reader | None", adapter: str | None = None) -> None:
        if given is None or isinstance(given, str | Path):
            given = model_name(None if given is None else str(given))
        elif adapter is not None:
            raise bad("adapter", "None beside a Reader", adapter, "Use longspan.load(..., adapter=...).")
        self._db, self._given, self._adapter = db, given, adapter
        self._loaded: tuple[Reader, str | None] | None = None
        self._loading = threading.RLock()

    @property
    def name(self) -> str | None:
        """The name of the model that the index was built with."""
        return self._db.get("model")

    @property
    def reader(self) -> "Reader":
        """The model; another than the one that the index was built with is an error."""
        with self._loading:  # once, also if several threads ask
            if self._loaded is None or self._loaded[1] != self._db.get("fingerprint"):
                self._loaded = self._load()  # again, if another process has cleared or rebuilt the index
            return self._loaded[0]

    def reader_for(self, tokens: str) -> "Reader":
        """The model, if it can do with what is kept of tokens."""
        from longspan.search.passages import way_of

        if tokens == "off" and way_of(self.reader).needs_tokens:
            raise bad("tokens", "1bit or 8bit for a model of late interaction", tokens, "It compares tokens.")
        return self.reader

    def _load(self) -> "tuple[Reader, str | None]":
        """The model, and the fingerprint that it shares with the index."""
        model, stamp = self._given, None
        if model is None or isinstance(model, str | Path):
            from longspan.builtin import ensure
            from longspan.hub import DEFAULT, resolve

            name = str(model or self.name or DEFAULT)
            if name == UNNAMED:
                repair = "Pass it: Index.open(folder, model=reader)."
                raise bad("model", "the Reader that the index was built with", model, repair)
            ensure(name)
            folder = resolve(name)
            name = model_name(name) or name
            adapter = self._checked_adapter(name)
            stamp = stamp_of(folder, adapter)
            reader = load_reader(folder, adapter)
        else:
            reader, name, adapter = model, UNNAMED, None
        with self._db.snapshot():
            known = {key: self._db.get(key) for key in ("stamp", "fingerprint")}
        if stamp is not None and stamp == known["stamp"]:
            return reader, known["fingerprint"]
        return reader, self._check(reader, name, stamp, adapter)

    def _checked_adapter(self, name: str) -> str | None:
        """The adapter that is given, else that of the index; another than that is an error."""
        kept = self._db.get("adapter")
        if kept is not None and self._adapter not in (None, kept):
            repair = "Rebuild the index with --rebuild, or use another folder."
            raise bad("adapter", f"{kept}, as the index was built", self._adapter, repair)
        return self._adapter or (kept if name == self.name else None)

    def _check(self, reader: "Reader", name: str, stamp: str | None, adapter: str | None) -> str:
        """Refuse a model that the index was not built with; write down what identifies this one."""
        mark, known = fingerprint(reader), self._db.get("fingerprint")
        if known not in (None, mark):
            requirement = f"the one that the index was built with ({self.name})"
            changed = "another Reader" if name == UNNAMED else f"{name}, which has changed since"
            value = changed if name == self.name else name
            raise bad("model", requirement, value, "Rebuild the index with --rebuild, or use another folder.")
        model = name if self.name in (None, UNNAMED) else str(self.name)
        facts = {"fingerprint": mark, "model": model, "stamp": stamp, "adapter": adapter}
        # A finished index is also useful where it cannot be written.
        with suppress(LongspanError) if known else nullcontext(), self._db.transaction():
            self._db.put(**{key: value for key, value in facts.items() if value is not None})
        return mark


def load_reader(folder: Path, adapter: str | None = None) -> "Reader":
    """The model in a folder, to read for an index: for tokens if it was made for these, else for vectors."""
    from longspan.checkpoints.late_interaction import is_late_interaction
    from longspan.loading import load

    task = None if is_late_interaction(folder) else "encode"
    return load(folder, task=task, overflow="window", adapter=adapter)
