"""The tasks by name, with the names Hugging Face gives them."""

from collections.abc import Iterable
from dataclasses import dataclass

from longspan.errors import InputError, bad, guess
from longspan.text.marking import Rule


@dataclass(frozen=True)
class Task:
    """What the reading of a document depends on."""

    name: str
    aliases: tuple[str, ...]
    rule: Rule
    "Which tokens are global if the user says nothing and the model has global tokens of the user's choice."
    shortened: int | None = None
    "The part that is cut or read in windows: 0 the text, 1 its pair, None the longer one."
    windows: bool = True
    "Whether what is found in the windows of a document can be joined."


TASKS = {
    task.name: task
    for task in (
        Task("encode", ("feature-extraction", "sentence-similarity"), "none"),
        Task("fill", ("fill-mask",), "none"),
        Task("classify", ("text-classification", "sentiment-analysis"), "first"),
        Task("tag", ("token-classification", "ner"), "none"),
        Task("answer", ("question-answering",), "question", shortened=1),
        Task("choose", ("multiple-choice",), "choice", shortened=0),
        Task("summarise", ("summarization", "summarize", "text2text-generation"), "first", windows=False),
    )
}
_NAMES = {name: task for task in TASKS.values() for name in (task.name, *task.aliases)}


def task_named(name: str) -> Task:
    """The task of that name.

    >>> task_named("ner").name
    'tag'
    """
    found = _NAMES.get(name.lower().replace("_", "-")) if isinstance(name, str) else None
    if found is None:
        raise bad("task", f"one of {', '.join(TASKS)}", name, guess(name, _NAMES))
    return found


def one_of(name: str, value: object, allowed: Iterable[str]) -> str:
    """`value` if it is one of the allowed names, else the error that lists them."""
    choices = list(allowed)
    if isinstance(value, str) and value in choices:
        return value
    raise bad(name, f"one of {', '.join(choices)}", value, guess(value, choices))


def wrong_task(verb: str, task: str) -> InputError:
    """The error for a verb that a model was not loaded for."""
    return bad("task", f"{verb} to call {verb}()", task, f"Load the model with task={verb!r}.")
