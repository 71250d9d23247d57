"""A large document survives kills in the middle of it: no step is lost, none is done twice."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from longspan.search.large import progress_of
from longspan.search.records import numbers
from longspan.search.store import Store
from longspan.search.verify import verify
from unit.search.dying import DYING

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
PARTS, ROWS = 6, 5
WORK = (
    DYING
    + """
from pathlib import Path
import numpy as np
from longspan.search import large
from longspan.search.database import Database
from longspan.search.records import Entry, File, Row, Tables
from longspan.search.store import Store

for owner, name in ((os, "fsync"), (Database, "do"), (Database, "do_many")):
    counted(owner, name)
large.STEP = 50
store = Store(Path(sys.argv[1]))
file = File(Path("/big.log"), 300, 7)
if file.size not in [known.size for known in store.files()]:
    growing = large.Growing.begin(store, [file], Entry(digest=b"big", title="big"))
    for part in range(growing.entry.characters // 50, 6):
        rows = [Row(50 * part + 10 * i, 1, "", f"river {part:02} ") for i in range(5)]
        growing.add(rows, 50 * part + 50)
        print("words", part, flush=True)
    growing.finish()
for entry in store.pending():
    done = large.progress_of(store, entry)
    for rows in large.segments(store, entry, done.passages):
        number = rows[0].start // 50
        made = Tables(
            np.full((6, 8), number + 0.5, np.float32),
            np.full((10, 3), number, np.uint8),
            2 + 2 * np.arange(5),
        )
        with store.db.transaction():
            done = large.advance(store, entry, done, made, (10, 0, 1))
        print("vectors", number, flush=True)
    with store.db.transaction():
        large.finish(store, entry, done)
print("done all", flush=True)
"""
)


def test_a_kill_at_any_step_of_a_large_document_loses_nothing(tmp_path: Path) -> None:
    draw, folder, said, kills, most = random.Random(3), tmp_path / "index", list[str](), 0, 25
    while said[-1:] != ["done all"]:
        command = [sys.executable, "-c", WORK, str(folder), str(draw.randrange(1, most))]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert process.returncode in (0, -signal.SIGKILL), process.stderr
        kills += process.returncode != 0
        assert kills < 40
        if not process.stdout:  # one step may need more than this
            most *= 2
        said += process.stdout.splitlines()
        store = Store(folder)
        verify(store)
        words = [line for line in said if line.startswith("words")]
        for entry in store.entries():
            assert len(words) <= entry.passages // ROWS <= len(words) + 1
            read = progress_of(store, entry).passages if entry.n_tokens is None else entry.passages
            assert read // ROWS >= len([line for line in said if line.startswith("vectors")])
        store.db.close()
    assert kills > 3
    assert len(set(said)) == len(said), "work was done twice"
    store = Store(folder)
    (entry,) = store.entries()
    assert (entry.digest, entry.passages, entry.n_tokens, entry.windows) == (b"big", PARTS * ROWS, 60, PARTS)
    expected = np.repeat(np.arange(PARTS) + 0.5, ROWS)
    assert (store.vectors()[entry.rows[1:]] == expected[:, None]).all()
    assert np.allclose(store.vectors()[entry.slot], 8**-0.5, atol=1e-3)
    codes = store.tokens()[entry.token_slot : entry.token_slot + entry.tokens]
    assert (codes == np.repeat(np.arange(PARTS), 10)[:, None]).all()
    assert np.array_equal(numbers(entry.token_ends), 2 + 2 * np.arange(PARTS * ROWS))
    assert [(file.path.name, file.size) for file in store.files()] == [("big.log", 300)]
