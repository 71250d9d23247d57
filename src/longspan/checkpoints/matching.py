"""State-dict matching: a model gets the tensors of a checkpoint; what does not fit is reported."""

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from longspan.checkpoints.report import LoadReport
from longspan.errors import refused
from longspan.families.keys import KeyTable, is_buffer
from longspan.families.task_model import TaskModel
from longspan.formats.weights import Weights
from longspan.nn.norm import LayerNorm

DECODER = "head.decoder.weight"
PROJECTIONS = "head.projections."
THIN = re.compile(r"\.lora_[AB]\.\d+$")
"""The names of what an adapter of a layer learns."""
_COPIED = re.compile(r"\.(query|key|value)_global\.")
_RANDOM = {
    nn.init.normal_,
    nn.init.trunc_normal_,
    nn.init.uniform_,
    nn.init.kaiming_uniform_,
    Tensor.normal_,
    Tensor.uniform_,
}


class NoInit(TorchFunctionMode):
    """Skips random initialization: on the meta device it would import half of torch for nothing."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        keywords = dict(kwargs or {})
        if func in _RANDOM:
            return keywords.get("tensor", args[0] if args else None)
        return func(*args, **keywords)


@dataclass
class Match:
    """Where each parameter of a model comes from."""

    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    "The tensors that, stacked, are the parameter."
    missing: dict[str, tuple[str, ...]] = field(default_factory=dict)
    "Parameters without tensors, and the names that were looked for."
    mismatched: dict[str, tuple[str, tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unused: dict[str, str] = field(default_factory=dict)
    "Tensors that are kept for saving, by their name in the key table, and their name in the file."

    def report(self, table: KeyTable, weights: Weights) -> LoadReport:
        """All names that did not match."""
        used = {key for keys in self.sources.values() for key in keys} | set(self.unused.values())
        used |= {name for name, _, _ in self.mismatched.values()}
        used |= {table.key(name) for pair in table.ties.items() for name in pair}
        return LoadReport(
            missing=tuple(key for keys in self.missing.values() for key in keys),
            unexpected=tuple(key for key in weights.shapes if key not in used and not is_buffer(key)),
            mismatched=tuple(self.mismatched.values()),
        )


def match_weights(model: TaskModel, table: KeyTable, weights: Weights, *, unused: tuple[str, ...]) -> Match:
    """Look for every parameter of a model; shapes are compared, nothing is read."""
    result, shapes = Match(), weights.shapes
    tied, buffers = is_tied(model), dict(model.named_buffers())
    for name, parameter in stored(model):
        keys = table.keys(name)
        present = tuple(key for key in (table.find(key, shapes, tied=tied) for key in keys) if key)
        if not keys or (name in buffers and not present):
            result.sources[name] = ()  # the family has no such table, or need not: it is 0
            continue
        if len(present) < len(keys):
            result.missing[name] = tuple(key for key in keys if table.find(key, shapes, tied=tied) is None)
            continue
        rows = splits(model, name, len(keys)) if len(keys) > 1 else parameter.shape[:1]
        wanted = [(count, *parameter.shape[1:]) for count in rows]
        found = [(key, shapes[key][0], shape) for key, shape in zip(present, wanted, strict=True)]
        if wrong := [one for one in found if one[1] != one[2]]:
            result.mismatched[name] = wrong[0]
        else:
            result.sources[name] = present
    for name in (f"{module}.{leaf}" for module in unused for leaf in ("weight", "bias")):
        if table.key(name) in shapes:
            result.unused[name] = table.key(name)
    return result


def settle(match: Match, place: Path, *, ignore_mismatched_sizes: bool) -> list[str]:
    """The head's parameters to be drawn anew; anything else that does not fit is an error."""
    for name, keys in list(match.missing.items()):
        if all(_COPIED.search(key) for key in keys):  # files made from a short model need not have them
            match.sources[name] = tuple(key.replace("_global.", ".") for key in keys)
    copied = [name for name in match.missing if name in match.sources]
    if copied:
        match.notes.append(f"{len(copied)} tensors of global projections were copied from the local ones.")
    lost = [name for name in match.missing if name not in match.sources and _in_backbone(name)]
    if lost:
        reason = f"it lacks {len(lost)} tensors of the backbone, such as {match.missing[lost[0]][0]!r}"
        raise refused(place, reason, "Is the model of another family or size?")
    for name, (key, stored_shape, model_shape) in match.mismatched.items():
        if _in_backbone(name) or not ignore_mismatched_sizes:
            repair = (
                "" if _in_backbone(name) else "Pass ignore_mismatched_sizes=True to draw such weights anew."
            )
            reason = f"{key!r} has the shape {stored_shape}, but the config asks for {model_shape}"
            raise refused(place, reason, repair)
    drawn = [name for name in (*match.missing, *match.mismatched) if name not in match.sources]
    if drawn:
        match.notes.append(f"{len(drawn)} tensors of the head were drawn anew: train it before use.")
    return drawn


def assign(model: TaskModel, match: Match, drawn: list[str], weights: Weights, dtype: torch.dtype) -> None:
    """Give every parameter its memory: that of the mapped file where neither shape nor dtype changes."""
    tied = is_tied(model)
    shapes = {name: tensor.shape for name, tensor in stored(model)}
    for name, keys in match.sources.items():
        shape = shapes[name]
        parts = [weights[key] for key in keys]
        put(model, name, _stacked(parts, dtype) if parts else torch.zeros(shape, dtype=dtype))
    for name in drawn:
        put(model, name, _fresh(model, name, dtype))
    if tied:
        put(model, DECODER, model.backbone.word_embeddings.weight)
    model.spare = {name: weights[key] for name, key in match.unused.items()}


def stored_dtype(match: Match, weights: Weights, place: Path) -> torch.dtype:
    """The dtype of the stored tensors, the widest if there are several."""
    dtypes = {weights.shapes[key][1] for keys in match.sources.values() for key in keys}
    if other := next((dtype for dtype in dtypes if not dtype.is_floating_point), None):
        repair = "Longspan reads floating-point weights only."
        raise refused(place, f"it holds weights of type {other}", repair)
    widest = torch.float16 if dtypes == {torch.float16} else torch.bfloat16
    for dtype in dtypes:
        widest = torch.promote_types(widest, dtype)
    return widest


def stored(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """All tensors that the file of a model holds: not an adapter's, nor what pooled vectors go through."""
    for name, parameter in model.named_parameters():
        if not name.startswith(PROJECTIONS) and not THIN.search(name):
            yield name, parameter
    kept = model.state_dict()
    yield from ((name, buffer) for name, buffer in model.named_buffers() if name in kept)


def is_tied(model: TaskModel) -> bool:
    """Whether the head decodes with the word embeddings themselves."""
    return model.decodes_words and model.get_parameter(DECODER) is model.backbone.word_embeddings.weight


def splits(model: nn.Module, name: str, count: int) -> tuple[int, ...]:
    """The rows of each of the tensors that make up a parameter: equal, unless the layer's owner says so."""
    owner, module, _ = name.rsplit(".", 2) if name.count(".") > 1 else ("", "", "")
    own: tuple[int, ...] = getattr(model.get_submodule(owner), "splits", ()) if module == "qkv" else ()
    return own if len(own) == count else (len(model.get_parameter(name)) // count,) * count


def pieces(
    model: nn.Module, name: str, parameter: Tensor, table: KeyTable, *, tied: bool
) -> Iterator[tuple[str, Tensor]]:
    """What a parameter is saved as: the rows of each key; a tied one by its partner's name."""
    keys = table.keys(name)
    whole = parameter.detach()
    parts = whole.split(splits(model, name, len(keys))) if len(keys) > 1 else (whole,)
    for key, rows in zip(keys, parts, strict=True):
        yield (table.saved(key) if tied else key), rows


def put(model: nn.Module, name: str, tensor: Tensor) -> None:
    """Make `tensor` the parameter, or the buffer, of that name."""
    path, _, leaf = name.rpartition(".")
    module = model.get_submodule(path)
    plain = isinstance(tensor, nn.Parameter) or leaf in module._buffers
    setattr(module, leaf, tensor if plain else nn.Parameter(tensor))


def _in_backbone(name: str) -> bool:
    return name.startswith("backbone.")


def _stacked(parts: list[Tensor], dtype: torch.dtype) -> Tensor:
    if len(parts) == 1:
        return parts[0].to(dtype).contiguous()
    rows = sum(map(len, parts))
    whole = torch.empty(rows, *parts[0].shape[1:], dtype=dtype)
    for part, place in zip(parts, whole.split([len(part) for part in parts]), strict=True):
        place.copy_(part)
    return whole


def _fresh(model: TaskModel, name: str, dtype: torch.dtype) -> Tensor:
    """Random numbers that depend on the name alone: a run that goes on begins with the same model."""
    module, _, leaf = name.rpartition(".")
    shape = dict(stored(model))[name].shape
    if leaf == "bias":
        return torch.zeros(shape, dtype=dtype)
    if isinstance(model.get_submodule(module), LayerNorm):
        return torch.ones(shape, dtype=dtype)
    own = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return torch.empty(shape, dtype=dtype).normal_(std=model.config.init_std, generator=own)
