"""A subject that goes wrong in the way that LONGSPAN_FUZZ_WRONG says: proof that the harness sees it."""

import os
import random
import time
from pathlib import Path

from longspan.errors import LongspanError

MEMORY = 700 << 20


def make(draw: random.Random, folder: Path) -> None:
    """A number."""
    (folder / "number").write_text(str(draw.random()))


def run(folder: Path) -> None:
    """Go wrong, or else refuse about half of the cases."""
    way = os.environ.get("LONGSPAN_FUZZ_WRONG", "")
    if way == "failed":
        raise KeyError("of another library")
    if way == "crashed":
        os.abort()
    if way == "hung":
        time.sleep(60)
    if way == "grew":
        assert len(b"x" * MEMORY) == MEMORY
    if float((folder / "number").read_text()) < 0.5:
        raise LongspanError("refused")
