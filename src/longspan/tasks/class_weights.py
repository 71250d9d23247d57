"""How much each class counts in a loss: rare ones more than frequent ones, or as the user says."""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from longspan.errors import bad, number, one_of
from longspan.nn.chunked_cross_entropy import IGNORE_INDEX

MOST = 1e6
"""Beyond it a class is all that a model learns."""

ClassWeights = str | Sequence[float] | Mapping[str, float]
""""balanced", a number for each class, or numbers by the names of classes, the others having 1."""


def class_weights(wanted: ClassWeights, classes: Sequence[str], labels: Iterable[Tensor]) -> Tensor:
    """The weight of each class (L,), as `loss` and `loss_sum` take it.

    Only "balanced" looks at `labels`: those of all batches, as batches hold them. For one label of several,
    (documents,) or (N,), it is sklearn's n / (L * count); for a table (documents, L) of zeros and ones,
    negatives / positives, which is what torch advises for `pos_weight`. A class that does not occur counts
    as if it had once.

    >>> class_weights("balanced", ["no", "yes"], [torch.tensor([0, 0]), torch.tensor([0, 1])])
    tensor([0.6667, 2.0000])
    >>> class_weights({"yes": 3}, ["no", "yes"], [])
    tensor([1., 3.])
    """
    if isinstance(wanted, str):
        one_of("class_weights", wanted, ("balanced",))
        return _balanced(len(classes), list(labels))
    if isinstance(wanted, Mapping):
        for name in wanted:
            one_of("class_weights", name, classes)
        wanted = [wanted.get(name, 1.0) for name in classes]
    if not isinstance(wanted, Sequence) or len(wanted) != len(classes):
        raise bad("class_weights", f"one number for each of the {len(classes)} classes", wanted)
    return torch.tensor([number("class_weights", weight, 0, MOST) for weight in wanted])


def _balanced(classes: int, labels: Sequence[Tensor]) -> Tensor:
    positives, examples = torch.zeros(classes, dtype=torch.float64), 0
    several = any(one.dim() == 2 for one in labels)
    for one in labels:
        if several:
            positives += one.double().sum(0)
            examples += len(one)
        else:
            found = one[one != IGNORE_INDEX]
            positives += found.bincount(minlength=classes)
            examples += found.numel()
    if examples == 0:
        repair = "Balance needs something to count."
        raise bad("class_weights", "given as numbers where there are no labels", "balanced", repair)
    positives = positives.clamp_min(1)
    negatives = (examples - positives).clamp_min(1)
    return (negatives / positives if several else examples / (classes * positives)).float()
