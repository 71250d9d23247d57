"""Variables of TensorFlow by the names and shapes that torch would give them."""

from collections.abc import Callable, Iterable, Mapping

from torch import Tensor

from longspan.errors import refused
from longspan.formats.part import Part

Rename = Callable[[Iterable[str]], Mapping[str, str]]
"""Variables -> the names that torch would give them, without those that are no weights of a model."""
LEAVES = {"kernel": "weight", "gamma": "weight", "beta": "bias", "bias": "bias"}
"""What the variables of Keras layers are called in torch; others, such as an optimizer's, are no weights."""


def in_torch_names(part: Part, place: object, rename: Rename) -> Part:
    """The weights by their new names; kernels are transposed, as torch stores them."""
    variables: dict[str, str] = {}
    for variable, name in rename(part.shapes).items():
        if variables.setdefault(name, variable) != variable:
            raise refused(place, f"{variable!r} and {variables[name]!r} are the same weight")

    def read(name: str) -> Tensor:
        tensor = part.read(variables[name])
        return tensor.movedim(0, -1) if _is_kernel(variables[name]) else tensor

    shapes = {name: part.shapes[variable] for name, variable in variables.items()}
    for name, variable in variables.items():
        if _is_kernel(variable):
            shape, dtype = shapes[name]
            shapes[name] = (*shape[1:], *shape[:1]), dtype
    return Part(shapes, read)


def torch_names(variables: Iterable[str], leaves: Mapping[str, str] = LEAVES) -> dict[str, str]:
    """The names in torch of variables whose last part is one of the `leaves`.

    >>> torch_names(["encoder/dense/kernel", "encoder/dense/kernel/adam_m", "global_step"])
    {'encoder/dense/kernel': 'encoder.dense.weight'}
    """
    parts = [(variable, *variable.rpartition("/")) for variable in variables]
    return {
        variable: f"{layer.replace('/', '.')}.{leaves[leaf]}"
        for variable, layer, _, leaf in parts
        if leaf in leaves
    }


def _is_kernel(variable: str) -> bool:
    return variable.endswith("/kernel")
