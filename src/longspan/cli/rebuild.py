"""`longspan index --rebuild`: a new index beside the old one, which it replaces when it is complete."""

import argparse
from pathlib import Path

from longspan.cli.terminal import say, size
from longspan.cli.updating import confirm, fill, opened, tell_report
from longspan.errors import InputError, LongspanError

KEPT = "The old index is kept."


def rebuild(folder: Path, arguments: argparse.Namespace) -> int:
    """Read everything again, with the model, its adapter and the kind of tokens as before unless told."""
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
    gone = [file for file in old.files if is_gone(file)]
    confirm(gone, len(old.files), arguments, KEPT)
    arguments.yes = arguments.yes or 2 * len(gone) > len(old.files)  # asked once
    model, tokens = model_name(arguments.model) or old.model, arguments.tokens or old.tokens
    adapter = arguments.adapter or (old.adapter if model == old.model else None)
    with rebuilding(folder, model, tokens=tokens, adapter=adapter) as index:
        report = fill(index, roots, arguments)
        present = {*index.files}
        confirm([file for file in old.files if file not in present], len(old.files), arguments, KEPT)
    with opened(folder, argparse.Namespace(model=arguments.model, adapter=adapter)) as index:
        return tell_report(index, report, arguments)


def _check_space(folder: Path) -> None:
    """Say how much a rebuild needs beside the old index, or raise an error if that is not free."""
    from longspan.search.rebuild import space

    needed, free = space(folder)
    if needed > free:
        where = f"about {size(needed)} free beside the old index, but there are {size(free)}"
        raise LongspanError(f"A rebuild needs {where}. Make room on the disk of `{folder}`.")
    say(f"a new index is built beside the old one, which stays until it is complete (about {size(needed)}).")
