"""Names of tasks and options, and help with misspelt ones."""

import pytest

from longspan.errors import InputError
from longspan.pipeline.options import Options
from longspan.tasks.registry import TASKS, task_named
from longspan.tasks.registry import TASKS as MODEL_TASKS


def test_there_is_a_task_for_every_head() -> None:
    assert set(TASKS) == set(MODEL_TASKS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("answer", "answer"),
        ("question-answering", "answer"),
        ("question_answering", "answer"),
        ("ner", "tag"),
        ("sentiment-analysis", "classify"),
        ("fill-mask", "fill"),
        ("feature-extraction", "encode"),
        ("multiple-choice", "choose"),
    ],
)
def test_tasks_go_by_the_names_of_hugging_face_too(name: str, expected: str) -> None:
    assert task_named(name).name == expected


def test_a_misspelt_task_is_guessed() -> None:
    with pytest.raises(
        InputError, match=r"`task` must be one of encode, .* but is 'anwser'\. Did you mean answer\?"
    ):
        task_named("anwser")


def test_something_else_is_no_task() -> None:
    with pytest.raises(InputError, match="`task` must be one of"):
        task_named(3)  # type: ignore[arg-type]


def test_a_misspelt_option_is_guessed() -> None:
    with pytest.raises(InputError, match=r"There is no option `overfow`\. Did you mean overflow\?"):
        Options().but(overfow="window")
    with pytest.raises(InputError, match=r"There is no option `zzz`\. Options are overflow, limit, "):
        Options().but(zzz=1)


@pytest.mark.parametrize(
    ("name", "value", "requirement"),
    [
        ("overflow", "windows", r"one of error, window, truncate, but is 'windows'\. Did you mean window\?"),
        ("budget", 0, "at least 1"),
        ("limit", 0, "at least 1"),
        ("overlap", -1, "at least 0"),
        ("deterministic", 1, "True or False"),
        ("progress", "yes", "True or False"),
    ],
)
def test_a_bad_option_says_what_it_must_be(name: str, value: object, requirement: str) -> None:
    with pytest.raises(InputError, match=f"`{name}` must be {requirement}"):
        Options().but(**{name: value})
