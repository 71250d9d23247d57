"""What the README shows can be run."""

import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_readme_runs(number: int) -> None:
    exec(compile(EXAMPLES[number], f"README example {number + 1}", "exec"), {})


def test_the_readme_has_examples() -> None:
    assert EXAMPLES
