"""Labeled examples in columns, each with the place in the file that it comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from longspan.datasets.records import Place
from longspan.errors import one_of, whole

WIDTH = 300
"""Characters of a text that a preview shows."""
Column = Sequence[object]


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Columns of equal length: `finetune(reader, *dataset.inputs, labels=dataset.labels)` takes them."""

    names: tuple[str, ...]
    "Of the inputs."
    inputs: tuple[Column, ...]
    labels: Column
    ids: Sequence[str]
    places: Sequence[Place]
    documents: Sequence[str]
    "A digest of the document of each example, white space and case ignored."
    classes: tuple[str, ...] = ()
    "The names of the classes, in the order of their numbers; none if labels are not classes."
    problem: str | None = None
    '"single", "multi" or "regression", where texts are classified.'
    more: Mapping[str, Column] = field(default_factory=dict)
    "Whatever else the file says of its examples, by the names of its columns; None where it says nothing."

    def __len__(self) -> int:
        return len(self.labels)

    def column(self, name: str) -> Column:
        """An input or another column by its name."""
        columns = {**self.more, **dict(zip(self.names, self.inputs, strict=True))}
        return columns[one_of("column", name, columns)]

    def take(self, examples: Sequence[int]) -> "Dataset":
        """Some of the examples, in this order."""

        def some(column: Sequence[object]) -> list[object]:
            return [column[example] for example in examples]

        return Dataset(
            names=self.names,
            inputs=tuple(map(some, self.inputs)),
            labels=some(self.labels),
            ids=[self.ids[example] for example in examples],
            places=[self.places[example] for example in examples],
            documents=[self.documents[example] for example in examples],
            classes=self.classes,
            problem=self.problem,
            more={name: some(column) for name, column in self.more.items()},
        )

    def sample(self, count: int = 3) -> "Dataset":
        """As many examples, or all if there are fewer, from beginning to end."""
        whole("count", count, 1)
        picked = min(count, len(self))
        return self.take([number * len(self) // picked for number in range(picked)])

    def preview(self, count: int = 3) -> str:
        """Some examples as a person looks at them: long texts shortened, answers as words."""
        some = self.sample(count)
        return "\n\n".join(some._shown(example) for example in range(len(some)))

    def _shown(self, example: int) -> str:
        values = [(name, column[example]) for name, column in zip(self.names, self.inputs, strict=True)]
        text = next((value for _, value in reversed(values) if isinstance(value, str)), "")
        choices = next((value for _, value in values if isinstance(value, list)), self.classes)
        lines = [f"{self.places[example]} ({self.ids[example]})"]
        lines += [f"  {name}: {_short(value)}" for name, value in values]
        return "\n".join([*lines, f"  label: {_short(_named(self.labels[example], text, choices))}"])


def _named(label: object, text: str, choices: Sequence[object]) -> object:
    """A label in words: those that a span stands for, a class or choice by its number."""
    if isinstance(label, list):
        return [_named(one, text, choices) for one in label]
    if isinstance(label, tuple):
        start, end, *name = label
        return (text[start:end], *name) if name else text[start:end]
    return choices[label] if choices and isinstance(label, int) else label


def _short(value: object) -> str:
    """A value on one line, its middle left out if it is long."""
    line = " ".join((value if isinstance(value, str) else repr(value)).split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH // 2]} ... {line[-WIDTH // 2 :]}"


def columns_of(rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
    """Mappings as columns; None where one has no such key.

    >>> columns_of([{"a": 1}, {"a": 2, "b": 3}])
    {'a': [1, 2], 'b': [None, 3]}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}
