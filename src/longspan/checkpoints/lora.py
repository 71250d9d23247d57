"""Which layers get a change of low rank: chosen by our names or by those of transformers' modules."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypedDict

import torch
from torch import nn

from longspan.checkpoints.matching import is_tied, splits
from longspan.errors import bad, guess
from longspan.families.base import BARE, Family
from longspan.families.keys import KeyTable
from longspan.families.registry import all_families, family_of
from longspan.families.schema import Raw
from longspan.families.task_model import TaskModel
from longspan.nn.linear import is_plain
from longspan.nn.lora import LoraConfig, LoraLinear, Outputs, exchange, lora_layers
from longspan.nn.quantized import is_quantized
from longspan.tasks.registry import task_of

ALL_LINEAR = "all-linear"
HEAD, WORDS = "head", "backbone.{0.words_name}"


class LoraOptions(TypedDict, total=False):
    """What is changed and how, by peft's names."""

    r: int
    lora_alpha: float
    lora_dropout: float
    use_rslora: bool
    target_modules: str | Sequence[str]
    modules_to_save: Sequence[str] | None


class Part(NamedTuple):
    """A linear layer as transformers has it: a module of its own, or some outputs of one of ours."""

    name: str
    outputs: Outputs


def add_lora(
    model: nn.Module,
    *,
    r: int = 8,
    lora_alpha: float = 16,
    lora_dropout: float = 0.0,
    use_rslora: bool = False,
    target_modules: str | Sequence[str] = ALL_LINEAR,
    modules_to_save: Sequence[str] | None = None,
    config: Raw | None = None,
    generator: torch.Generator | None = None,
) -> tuple[str, ...]:
    """Freeze a model and give linear layers changes of low rank to be learned; the names of these layers.

    `target_modules` are names or their ends, one pattern for whole names (re.fullmatch), or "all-linear": all
    of the backbone. Names are ours ("qkv") or those of transformers' modules ("query"): where one layer of
    ours stands for several of theirs, each has thin matrices of its own, as in peft. `modules_to_save` are
    trained whole and saved with the adapter; None: the head, if it was made for the task. `config` is the
    config.json that the model was loaded with.

    >>> from longspan.families.longformer.model import LongformerConfig
    >>> from longspan.tasks.registry import build
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=1, heads=2, feed_forward=16, radius=3)
    >>> add_lora(build(tiny, "classify"), target_modules=["query", "value"])
    ('backbone.layers.0.attention.qkv',)
    """
    how = LoraConfig(r=r, lora_alpha=lora_alpha, lora_dropout=lora_dropout, use_rslora=use_rslora)
    if lora_layers(model):
        raise bad("model", "one without an adapter", "with one", "merge_and_unload() it, or unload() it.")
    if is_quantized(model):
        raise bad("model", "of floating-point weights", "int8", "Load it without precision='int8'.")
    table = table_of(model, config or {}) if isinstance(model, TaskModel) else None
    whole = _whole(model, modules_to_save, table)
    layers = {path: parts for path, parts in linear_parts(model, table) if f"{path}.weight" not in whole}
    chosen = _chosen(layers, target_modules, isinstance(model, TaskModel))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(parameter.requires_grad and name in whole)
    for path, parts in chosen.items():
        layer = model.get_submodule(path)
        assert isinstance(layer, nn.Linear)
        exchange(model, layer, LoraLinear(layer, how, [part.outputs for part in parts], generator))
    if isinstance(model, TaskModel):
        model.saved_whole = whole
    return tuple(chosen)


def table_of(model: TaskModel, config: Raw) -> KeyTable:
    """The names of transformers' modules of the same model, or ours if it has no such model."""
    ending, own = model.architecture, model.backbone.config
    family = family_named(model, config)
    if family.why_not(own, ending):
        task = task_of(ending)
        return family.own_table(ending, task.saved_as, own, task.modules)
    return family.as_modules.table(ending, "" if ending == BARE else family.prefix)


def family_named(model: TaskModel, config: Raw) -> Family:
    """The family that a config.json names, if such a model is one of it, else what it would be saved as."""
    own, named = model.backbone.config, config.get("model_type")
    kin = [one for one in all_families() if one.config is type(own) and one.model_type == named]
    return kin[0] if kin else family_of(own, config)


def linear_parts(model: nn.Module, table: KeyTable | None) -> Iterator[tuple[str, tuple[Part, ...]]]:
    """The linear layers of a model, each with what it stands for."""
    for path, layer in model.named_modules():
        if path and isinstance(layer, nn.Linear) and (is_plain(layer) or isinstance(layer, LoraLinear)):
            yield path, tuple(_parts(model, path, layer, table))


def _parts(model: nn.Module, path: str, layer: nn.Linear, table: KeyTable | None) -> Iterator[Part]:
    keys = names_of(table, f"{path}.weight")
    if len(keys) < 2:
        name = keys[0].removesuffix(".weight") if keys else path
        yield Part(name, Outputs(0, layer.out_features))
        return
    start = 0
    for key, count in zip(keys, splits(model, f"{path}.weight", len(keys)), strict=True):
        yield Part(key.removesuffix(".weight"), Outputs(start, start + count))
        start += count


def names_of(table: KeyTable | None, name: str) -> tuple[str, ...]:
    """The tensors that transformers has for a parameter; none if it has no such thing."""
    try:
        return () if table is None else table.keys(name)
    except KeyError:
        return ()


def _whole(model: nn.Module, wanted: Sequence[str] | None, table: KeyTable | None) -> tuple[str, ...]:
    """The parameters that are trained as they are."""
    if isinstance(wanted, str):
        raise bad("modules_to_save", "a list of names", wanted, f"Write [{wanted!r}].")
    if wanted is None:
        own_head = isinstance(model, TaskModel) and model.architecture != BARE and not model.decodes_words
        wanted = [HEAD] if own_head else []
    names = {
        name: (name, *names_of(table, name)) for name, one in model.named_parameters() if one.requires_grad
    }
    inside = {name: {end for one in known for end in _modules(one)} for name, known in names.items()}
    for end in wanted:
        if not any(_ends(module, end) for modules in inside.values() for module in modules):
            known_names = {module for modules in inside.values() for module in modules}
            raise bad("modules_to_save", "names of modules with weights", end, guess(end, known_names))
    found = [
        name for name, modules in inside.items() if any(_ends(one, end) for one in modules for end in wanted)
    ]
    if isinstance(model, TaskModel) and is_tied(model) and WORDS.format(model.backbone.config) in found:
        raise bad(
            "modules_to_save", "modules whose weights no other has", [*wanted], "Words are decoded by theirs."
        )
    return tuple(found)


def _modules(name: str) -> Iterator[str]:
    """The modules that a parameter is inside of: a.b.weight -> a.b, a."""
    while name := name.rpartition(".")[0]:
        yield name


def _ends(name: str, end: str) -> bool:
    return name == end or name.endswith(f".{end}")


def _chosen(
    layers: dict[str, tuple[Part, ...]], wanted: str | Sequence[str], headed: bool
) -> dict[str, tuple[Part, ...]]:
    """The layers, and of each the parts, that are targets."""
    if isinstance(wanted, str) and wanted.lower() == ALL_LINEAR:
        found = {path: parts for path, parts in layers.items() if not headed or path.startswith("backbone.")}
    else:
        patterns = [_pattern(wanted)] if isinstance(wanted, str) else [_end(name) for name in wanted]
        found = {}
        for path, parts in layers.items():
            here = any(pattern.fullmatch(path) for pattern in patterns)
            mine = [part for part in parts if here or any(one.fullmatch(part.name) for one in patterns)]
            if mine:
                found[path] = tuple(mine)
        names = [name for path, parts in layers.items() for name in (path, *(part.name for part in parts))]
        for pattern, given in zip(patterns, [wanted] if isinstance(wanted, str) else wanted, strict=True):
            if not any(pattern.fullmatch(name) for name in names):
                raise bad("target_modules", "names of linear layers", given, _near(given, names))
    if not found:
        raise bad("target_modules", "names of linear layers", wanted, "The model has none of them.")
    return found


def _end(name: str) -> re.Pattern[str]:
    if not isinstance(name, str) or not name:
        raise bad("target_modules", "a list of names", name)
    return re.compile(rf"(.*\.)?{re.escape(name)}", re.DOTALL)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise bad("target_modules", f"a regular expression ({error})", text) from None


def _near(name: str, names: Iterable[str]) -> str:
    """The sentence that offers a name, or its end, for one that there is not."""
    ends = dict.fromkeys(name.rpartition(".")[2] for name in names)
    return guess(name.rpartition(".")[2], ends) or f"Such as {', '.join(list(ends)[:8])}."
