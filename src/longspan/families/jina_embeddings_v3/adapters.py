"""Adapters in the authors' files: low-rank changes of every weight, one for each task (Hu et al. 2021)."""

import torch
from torch import Tensor

from longspan.errors import bad, number, one_of
from longspan.families.schema import Raw
from longspan.formats.part import Part
from longspan.formats.weights import Weights

NONE = "none"
"""The name that asks for the weights without any adapter."""
KEPT, MARK = ".original", ".parametrizations."
LEFT, RIGHT = ".0.lora_B", ".0.lora_A"


def merged(raw: Raw, weights: Weights, adapter: str | None) -> Weights:
    """The weights with one adapter added: W + B A alpha / rank, or "none" of them.

    A file with several names none as its usual one: it has to be said.
    """
    places = {name.removesuffix(KEPT) for name in weights if MARK in name and name.endswith(KEPT)}
    if not places:
        if adapter is not None:
            raise bad("adapter", "None for a file without adapters", adapter)
        return weights
    names = raw.get("lora_adaptations")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise bad("lora_adaptations", "the names of the adapters", names)
    chosen = names[0] if adapter is None and len(names) == 1 else adapter
    if chosen is None:
        repair = "Say which one is to be merged, such as longspan.load(..., adapter=...)."
        raise bad("adapter", f"one of {', '.join((*names, NONE))}", None, repair)
    one_of("adapter", chosen, (*names, NONE))
    number_of = None if chosen == NONE else names.index(chosen)
    rank, alpha = number("lora_rank", raw.get("lora_rank", 4), 1, 1e6), raw.get("lora_alpha", 1)
    scale = number("lora_alpha", alpha, 0.0, 1e6) / rank
    _check(weights, places, len(names))
    plain = {place.replace(MARK, "."): place for place in places}
    rest = {name: shape for name, shape in weights.shapes.items() if MARK not in name}
    shapes = rest | {name: weights.shapes[place + KEPT] for name, place in plain.items()}

    def read(name: str) -> Tensor:
        if name not in plain:
            return weights[name]
        place = plain[name]
        weight = weights[place + KEPT]
        if number_of is None:
            return weight
        b, a = (weights[place + part][number_of].float() for part in (LEFT, RIGHT))
        change = a @ b if _swapped(place) else b @ a
        return (weight.float() + change * scale).to(weight.dtype)

    return Weights([Part(shapes, read)])


def _swapped(place: str) -> bool:
    """Whether A and B have changed places, as they have in tables of embeddings."""
    return "embeddings." in place


def _check(weights: Weights, places: set[str], count: int) -> None:
    for place in places:
        (rows, columns), _ = weights.shapes[place + KEPT]
        found = [weights.shapes.get(place + part, ((), torch.float32))[0] for part in (LEFT, RIGHT)]
        b, a = found[::-1] if _swapped(place) else found
        fits = len(a) == len(b) == 3 and a[0] == b[0] == count and b[2] == a[1]
        if not fits or (b[1], a[2]) != (rows, columns):
            wanted = f"({count}, {rows}, rank) and ({count}, rank, {columns})"
            raise bad(place[:200], f"changed by adapters of the shapes {wanted}", f"{b} and {a}")
