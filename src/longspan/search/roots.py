"""The files and folders that an index was filled with, so that they can be looked through again."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from longspan.search.database import Database
from longspan.search.faults import sound


def known_roots(db: Database) -> list[Path]:
    """The files and folders that were added."""
    with sound(db.folder):
        return [Path(root) for root in json.loads(db.get("roots") or "[]")]


def add_roots(db: Database, paths: Sequence[Path]) -> None:
    """Remember files and folders, unless they lie in one that is remembered."""
    known = known_roots(db)
    _put(db, known, [*known, *paths])


def remove_roots(db: Database, paths: Sequence[Path]) -> None:
    """Forget files and folders, and all inside them."""
    known = known_roots(db)
    _put(db, known, [root for root in known if not covered(root, paths)])


def _put(db: Database, known: Sequence[Path], roots: Sequence[Path]) -> None:
    wider = [root for root in dict.fromkeys(roots) if not covered(root, roots, strictly=True)]
    if wider != list(known):
        with db.transaction():
            db.put(roots=json.dumps([os.fspath(root) for root in wider]))


def covered(path: Path, roots: Sequence[Path], *, strictly: bool = False) -> bool:
    """Whether a path lies in one of some folders, or is one of them."""
    return not set(roots).isdisjoint(path.parents) or (not strictly and path in roots)
