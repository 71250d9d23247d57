"""What the adapters share: the Reader that they are given or load, and what to say of a missing package."""

from pathlib import Path
from typing import Unpack

from longspan.errors import LongspanError, bad
from longspan.loading import load
from longspan.pipeline.options import ReadingOptions
from longspan.reader import Reader

Model = Reader | str | Path
"""A Reader, or what longspan.load() makes one from."""


class MissingPackageError(LongspanError, ImportError):
    """An adapter was imported without the package that it adapts to."""


def missing(package: str, extra: str) -> MissingPackageError:
    """The error for a package that is not installed, to be raised by the caller.

    >>> str(missing("haystack-ai", "haystack"))
    "The package haystack-ai is not installed. Install it: pip install 'longspan[haystack]'"
    """
    how = f"Install it: pip install 'longspan[{extra}]'"
    return MissingPackageError(f"The package {package} is not installed. {how}", name=package)


def reader_of(model: Model, **options: Unpack[ReadingOptions]) -> Reader:
    """The Reader, or one that is loaded with these options."""
    if not isinstance(model, Reader):
        return load(model, **options)
    if options:
        raise bad(
            "options", "left out where a Reader is given", sorted(options), "Give them to longspan.load()."
        )
    return model
