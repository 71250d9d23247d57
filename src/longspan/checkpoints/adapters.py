"""Adapters of peft as files: a change of low rank beside a model, written, read, and merged into weights."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from longspan.checkpoints.adapter_config import (
    ADAPTER_CONFIG,
    AdapterConfig,
    read_adapter_config,
    write_adapter_config,
)
from longspan.checkpoints.lora import family_named, linear_parts, names_of, table_of
from longspan.checkpoints.matching import Match, is_tied, pieces, put, splits, stored
from longspan.errors import bad, refused
from longspan.families.schema import Raw
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import replaced_files, settled
from longspan.formats.files import inside
from longspan.formats.part import Part
from longspan.formats.safetensors import open_safetensors
from longspan.formats.weights import write_safetensors
from longspan.nn.linear import wide
from longspan.nn.lora import lora_layers

WEIGHTS, PICKLED = "adapter_model.safetensors", "adapter_model.bin"
PREFIX = "base_model.model."
PAIRS = {".weight": (".lora_A.weight", ".lora_B.weight"), "": (".lora_embedding_A", ".lora_embedding_B")}
"""How the thin matrices of a layer are named, and those of a table of embeddings."""
SAME = "Is it an adapter of this model?"


def save_adapter(
    model: TaskModel, folder: str | Path, *, base: str | None = None, config: Raw | None = None
) -> None:
    """Write what add_lora() lets be trained, as peft does, which reads it beside transformers' model.

    `base` is the name or folder of the model that is changed, `config` its config.json. The files take the
    place of an adapter that is there, all or none.
    """
    layers = lora_layers(model)
    if not layers:
        raise bad("model", "one with an adapter", "without", "add_lora() gives it one.")
    raw = dict(config or {})
    table = table_of(model, raw)
    known = {path: {part.outputs: part.name for part in parts} for path, parts in linear_parts(model, table)}
    tensors: dict[str, Tensor] = {}
    targets: list[str] = []
    for path, layer in layers.items():
        for outputs, *thin in zip(layer.parts, layer.lora_A, layer.lora_B, strict=True):
            targets.append(known[path][outputs])
            tensors |= {f"{targets[-1]}{end}": one for end, one in zip(PAIRS[".weight"], thin, strict=True)}
    whole: set[str] = set()
    for name in model.saved_whole:
        if not names_of(table, name):
            raise bad("modules_to_save", "modules that a file of the model holds", name)
        parts = dict(pieces(model, name, model.get_parameter(name), table, tied=is_tied(model)))
        whole |= {_module(key, table.prefix) for key in parts}
        tensors |= parts
    how = next(iter(layers.values())).config
    named = base or raw.get("_name_or_path")
    with replaced_files(Path(folder), owns=is_adapter_file, last=ADAPTER_CONFIG) as fresh:
        kept = {f"{PREFIX}{name}": one.detach().float().cpu() for name, one in tensors.items()}
        write_safetensors(fresh / WEIGHTS, kept)
        write_adapter_config(
            fresh,
            how,
            targets=targets,
            saved=[*whole],
            base=str(named) if named else None,
            architecture=model.architecture,
        )


def is_adapter_file(name: str) -> bool:
    """Whether a file of that name belongs to an adapter."""
    return name in (ADAPTER_CONFIG, WEIGHTS, PICKLED)


def _module(key: str, prefix: str) -> str:
    """The module that peft keeps for a tensor: a whole head, or a part of the backbone."""
    inside_backbone = bool(prefix) and key.startswith(prefix)
    return key.rpartition(".")[0] if inside_backbone else key.partition(".")[0]


class Change(NamedTuple):
    """What an adapter does to some rows of a parameter."""

    start: int
    stop: int
    tensors: tuple[str, ...]
    "A and B, or what takes the place of the rows."
    scaling: float
    turned: bool
    "Whether the product is that of B and A turned, as in tables of embeddings."


@dataclass
class Adapter:
    """An adapter as it was opened: what its tensors are, and how they are scaled."""

    folder: Path
    config: AdapterConfig
    part: Part
    changes: dict[str, list[Change]] = field(default_factory=dict)
    "By parameter, once it is matched with a model."

    def match(self, model: TaskModel, raw: Raw, match: Match) -> None:
        """Find the parameter of each tensor; one that fits no parameter, or not its shape, is refused.

        What the adapter holds whole need not be in the file of the model, and leaves its `match`.
        """
        left, table = dict.fromkeys(self.part.shapes), table_of(model, raw)
        for prefix in dict.fromkeys((table.prefix, family_named(model, raw).prefix, "")):
            names = replace(table, prefix=prefix)
            for name, parameter in stored(model):
                for key, (start, stop) in _rows(model, name, names_of(names, name), parameter):
                    for change in self._found(key, (stop - start, *parameter.shape[1:]), start, left):
                        self.changes.setdefault(name, []).append(change)
        self._refuse_tied(model, {table.key(name) for pair in table.ties.items() for name in pair})
        self._cover(match, model)
        if unused := self._unused(model, raw, left):
            match.notes.append(
                f"{unused} tensors of the adapter belong to modules that the task does not use."
            )

    def _cover(self, match: Match, model: TaskModel) -> None:
        shapes = {name: len(parameter) for name, parameter in stored(model)}
        for name, changes in self.changes.items():
            rows = sum(change.stop - change.start for change in changes if len(change.tensors) == 1)
            if rows == shapes[name] and (name in match.missing or name in match.mismatched):
                match.missing.pop(name, None)
                match.mismatched.pop(name, None)
                match.sources[name] = ()

    @torch.no_grad()
    def merge(self, model: TaskModel) -> None:
        """Give the parameters their changes; those that share memory with a file are copied."""
        present = dict(stored(model))
        for name, changes in self.changes.items():
            now = present[name]
            new = wide(now).clone()
            for change in changes:
                parts = [self.part.read(PREFIX + tensor).to(new.dtype) for tensor in change.tensors]
                rows = new[change.start : change.stop]
                if len(parts) == 1:
                    rows.copy_(parts[0])
                else:
                    product = parts[1] @ parts[0]
                    rows.add_(product.T if change.turned else product, alpha=change.scaling)
            put(model, name, new.to(now.dtype))

    def _found(self, key: str, shape: tuple[int, ...], start: int, left: dict[str, None]) -> Iterator[Change]:
        """What the adapter has for a tensor of that name and shape."""
        module = key.removesuffix(".weight")
        stop = start + shape[0]
        if PREFIX + key in left:
            self._check(key, shape)
            del left[PREFIX + key]
            yield Change(start, stop, (key,), 1.0, False)
        for ends in PAIRS.values() if key.endswith(".weight") else ():
            pair = tuple(f"{module}{end}" for end in ends)
            if not any(PREFIX + name in left for name in pair):
                continue
            turned, rank = ends is PAIRS[""], self.config.rank(module)
            rows, columns = shape[::-1] if turned else shape
            self._check(pair[0], (rank, columns))
            self._check(pair[1], (rows, rank))
            for name in pair:
                del left[PREFIX + name]
            yield Change(start, stop, pair, self.config.scaling(module), turned)

    def _check(self, name: str, wanted: tuple[int, ...]) -> None:
        place = self.folder / WEIGHTS
        if PREFIX + name not in self.part.shapes:
            raise refused(place, f"it has no {name[:200]!r}", "Save it again.")
        shape, dtype = self.part.shapes[PREFIX + name]
        if shape != wanted:
            reason = f"{name[:200]!r} has the shape {shape}, but must have {wanted}"
            raise refused(place, reason, "Give labels= if it has another number of classes. " + SAME)
        if not dtype.is_floating_point:
            raise refused(place, f"{name[:200]!r} holds {dtype}")

    def _refuse_tied(self, model: TaskModel, tied: set[str]) -> None:
        """Words that are decoded by their embeddings have one weight, and peft changes one use of it."""
        ends = ("", *(end for pair in PAIRS.values() for end in pair))
        names = {f"{PREFIX}{key.removesuffix('.weight')}{end}" for key in tied for end in ends}
        names |= {f"{PREFIX}{key}" for key in tied}
        if not is_tied(model):
            return
        words = self.changes.get(f"backbone.{model.backbone.config.words_name}", ())
        found = sorted(names & self.part.shapes.keys()) + [change.tensors[0] for change in words]
        if found:
            reason = f"it changes {found[0]!r}, but the weight is that of the embeddings and of the head"
            raise refused(self.folder / WEIGHTS, reason, "Merge it by peft.")

    def _unused(self, model: TaskModel, raw: Raw, left: dict[str, None]) -> int:
        """How many tensors are of another head, or of a module that is not used; all others are refused."""
        family = family_named(model, raw).as_modules
        modules = [*(head.values() for head in family.heads.values()), *family.unused.values()]
        heads = {
            module.replace("{backbone}", prefix)
            for names in modules
            for module in names
            for prefix in (family.prefix, "")
        }
        for name in left:
            module = (
                name.removeprefix(PREFIX).rpartition(".")[0].removesuffix(".lora_A").removesuffix(".lora_B")
            )
            if not name.startswith(PREFIX) or module not in heads:
                raise refused(self.folder / WEIGHTS, f"nothing is called {name[:200]!r}", SAME)
        return len(left)


def _rows(
    model: TaskModel, name: str, keys: tuple[str, ...], parameter: Tensor
) -> Iterator[tuple[str, tuple[int, int]]]:
    """The rows of a parameter that each of its names stands for."""
    counts = splits(model, name, len(keys)) if len(keys) > 1 else parameter.shape[:1]
    start = 0
    for key, count in zip(keys, counts, strict=False):
        yield key, (start, start + count)
        start += count


def adapter_folder(adapter: str | Path | None) -> Path | None:
    """The folder that `adapter` means, if it means one; else it is a name inside the file of a model."""
    if adapter is None:
        return None
    folder = Path(os.path.abspath(os.path.expanduser(adapter)))
    if os.path.lexists(folder / ADAPTER_CONFIG):
        return folder
    if isinstance(adapter, os.PathLike) or folder.is_dir():
        raise bad("adapter", f"a folder with {ADAPTER_CONFIG}, or a name", str(adapter))
    return None


@contextmanager
def opened(folder: Path | None) -> Iterator[Adapter | None]:
    """The adapter in a folder, none of whose files change inside the block."""
    if folder is None:
        yield None
        return
    with settled(folder):
        if not os.path.lexists(folder / WEIGHTS) and os.path.lexists(folder / PICKLED):
            repair = "Load it by peft and save it with safe_serialization=True."
            raise refused(folder / PICKLED, "it may hold code", repair)
        yield Adapter(folder, read_adapter_config(folder), open_safetensors(inside(folder, WEIGHTS)))
