"""`longspan index --rebuild`: a new index beside the old one, which it replaces when it is complete."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from longspan.cli.index import agreed, fill, opened, tell_report
from longspan.cli.terminal import say, size
from longspan.errors import InputError, LongspanError, bad

if TYPE_CHECKING:
    from longspan.search.rebuild import Known


def rebuild(folder: Path, arguments: argparse.Namespace) -> int:
    """Read everything again, with the model and what is kept of tokens as before unless the options say."""
    from longspan.search.library import model_name
    from longspan.search.rebuild import known, rebuilding
    from longspan.search.update import is_gone, listed

    old = known(folder)
    roots = list(dict.fromkeys([*listed(arguments.paths), *(path for path in old.paths if path.exists())]))
    if not roots:
        reason = (
            f"Nothing that the index `{folder}` was filled with is there, or it cannot tell what that was."
        )
        raise InputError(f"{reason} Name files and folders: longspan index PATH... --rebuild.")
    _check_space(folder)
    _check_loss([file for file in old.files if is_gone(file)], old, arguments)
    model, tokens = model_name(arguments.model) or old.model, arguments.tokens or old.tokens
    with rebuilding(folder, model, tokens=tokens) as index:
        report = fill(index, roots, arguments)
        present = {*index.files}
        _check_loss([file for file in old.files if file not in present], old, arguments)
    with opened(folder, argparse.Namespace(model=arguments.model)) as index:
        return tell_report(index, report, arguments)


def _check_space(folder: Path) -> None:
    """Say how much a rebuild needs beside the old index, or raise an error if that is not free."""
    from longspan.search.rebuild import space

    needed, free = space(folder)
    if needed > free:
        where = f"about {size(needed)} free beside the old index, but there are {size(free)}"
        raise LongspanError(f"A rebuild needs {where}. Make room on the disk of `{folder}`.")
    say(f"a new index is built beside the old one, which stays until it is complete (about {size(needed)}).")


def _check_loss(lost: list[Path], old: "Known", arguments: argparse.Namespace) -> None:
    """Raise an error if the new index would hold less than half of the old files, unless the user agrees."""
    if 2 * len(lost) > len(old.files) and not agreed(lost, len(old.files), arguments):
        value = f"{len(lost)} of {len(old.files)}, such as {lost[0]}"
        repair = "The old index is kept. Use --yes if that is right."
        raise bad("what is forgotten", "at most half of the files of the index", value, repair)
    arguments.yes = arguments.yes or 2 * len(lost) > len(old.files)  # asked once
