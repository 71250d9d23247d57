"""What is built and tested is what is written down: every dependency, direct or not, has one version."""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LINES = [line.partition("#")[0].strip() for line in (ROOT / "constraints.txt").read_text().splitlines()]
PINS: dict[str, str] = {
    canonicalize_name(name): version for name, _, version in (line.partition("==") for line in LINES if line)
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BUILD = [Requirement(text) for text in PROJECT["build-system"]["requires"]]
DEV = Requirement("longspan[dev,hf]")


def needed(requirement: Requirement, extra: str = "") -> bool:
    """Whether it is installed on this machine."""
    return requirement.marker is None or requirement.marker.evaluate({"extra": extra})


def closure(roots: list[Requirement]) -> set[str]:
    """The names of all that is installed for these requirements, themselves left out if they are ours."""
    seen: set[tuple[str, str]] = set()
    left = [(root.name, extra) for root in roots for extra in ("", *root.extras)]
    while left:
        name, extra = left.pop()
        if (canonicalize_name(name), extra) in seen:
            continue
        seen.add((canonicalize_name(name), extra))
        for line in distribution(name).requires or ():
            further = Requirement(line)
            if needed(further, extra):
                left += [(further.name, more) for more in ("", *further.extras)]
    return {name for name, _ in seen} - {"longspan"}


def test_every_line_names_one_version_of_a_package_that_is_named_once() -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!_-]+", line) for line in LINES if line)
    assert len(PINS) == sum(map(bool, LINES))


def test_all_that_is_installed_for_development_is_pinned_and_is_that_version() -> None:
    names = closure([DEV])
    assert {"torch", "tokenizers", "pytest", "ruff", "mypy", "sphinx"} <= names, "the walk found little"
    assert not names - PINS.keys()
    other = {name: distribution(name).version for name in names}
    assert not {name: version for name, version in other.items() if version.partition("+")[0] != PINS[name]}


def test_what_builds_a_wheel_is_pinned() -> None:
    try:
        names = closure(BUILD)
    except PackageNotFoundError as missing:
        pytest.skip(f"{missing} is not installed")
    assert names >= {"scikit-build-core", "nanobind"}
    assert not names - PINS.keys()


def test_whatever_make_installs_is_held_to_the_pins() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert "export PIP_CONSTRAINT := $(CURDIR)/constraints.txt" in makefile
    assert "export PIP_BUILD_CONSTRAINT := $(PIP_CONSTRAINT)" in makefile
    loose = [line for line in makefile.splitlines() if "PIP_CONSTRAINT=" in line]
    assert all("$(TRANSFORMERS)" in line for line in loose), (
        "only a checkout of the user's own choice is free"
    )
    assert sys.version_info[:2] >= (3, 11)
