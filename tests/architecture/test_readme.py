"""What the README and the page on models show can be run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = "README.md", "docs/models.md", "docs/how-to/transformers.md"
EXAMPLES = [
    (page, code)
    for page in PAGES
    for code in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
]


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int) -> None:
    page, code = EXAMPLES[number]
    exec(compile(code, f"example {number + 1} in {page}", "exec"), {})


def test_every_page_has_examples() -> None:
    assert {page for page, _ in EXAMPLES} == set(PAGES)
