"""An index survives: kills at every step and inside commits, and what was done is not done again."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longspan.search.index import Index
from longspan.search.records import numbers
from longspan.search.store import Store
from longspan.search.verify import verify
from unit.search.dying import DYING
from unit.search.folders import filled, tiny

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
WORK = (
    DYING
    + """
from pathlib import Path
from dataclasses import replace
import numpy as np
from longspan.search.database import Database
from longspan.search.compaction import compact
from longspan.search.records import Entry, File, Row, Tables
from longspan.search.store import Store

for owner, name in ((os, "fsync"), (Database, "do"), (Database, "do_many"), (Path, "unlink")):
    counted(owner, name)
store = Store(Path(sys.argv[1]))
known = {file.path.name for file in store.files()}
for number in range(6):
    if str(number) in known or "moved" in known:
        continue
    names = (str(number), f"{number} twin")
    group = [
        (Entry(digest=name.encode(), title=name), [Row(0, 1, "", f"river {name} {i}") for i in range(20)])
        for name in names
    ]
    with store.db.transaction():
        ids = store.add(group)
        store.put_files([File(Path("/", name), 1, number, ids[name.encode()]) for name in names])
    print("words", number, flush=True)
for entry in store.pending():
    number = int(entry.title[0])
    tables = Tables(
        np.full((21, 8), number + 0.5, np.float32), np.full((40, 5), number, np.uint8), 2 + 2 * np.arange(20)
    )
    with store.db.transaction():
        store.put_vectors([(replace(entry, n_tokens=40), tables)])
    print("vectors", entry.title.replace(" ", "_"), flush=True)
if "moved" not in known:
    with store.db.transaction():
        kept = [file for file in store.files() if file.path.name[0] not in "024"]
        store.remove([file.path for file in store.files()])
        store.put_files([f._replace(path=Path("/moved")) if f.path.name == "1" else f for f in kept])
        store.remove_orphans()
    print("moved all", flush=True)
compact(store)
print("done all", flush=True)
"""
)


def started(folder: Path, left: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORK, str(folder), str(left)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str], folder: Path, before: str = "") -> list[str]:
    """What a process said before it ended; the index is whole and holds all of it."""
    said, wrong = process.communicate()
    said = before + said
    assert process.returncode in (0, -signal.SIGKILL), wrong
    store = Store(folder)
    verify(store)
    known = {file.path.name for file in store.files()}
    entries = {entry.title: entry for entry in store.entries()}
    for line in said.splitlines():
        step, name = line.split()
        if step == "words":
            assert "moved" in known or {name, f"{name} twin"} <= known
        if step == "vectors":
            assert "moved" in known or entries[name.replace("_", " ")].n_tokens == 40
    for entry in entries.values():
        if entry.n_tokens is not None:
            number = int(entry.title[0])
            assert (store.vectors()[entry.rows] == number + 0.5).all()
            assert (store.tokens()[entry.token_slot : entry.token_slot + 40] == number).all()
            assert numbers(entry.token_ends)[-1] == 40
    store.db.close()
    return said.splitlines()


def check_finished(folder: Path) -> None:
    store = Store(folder)
    names = [file.path.name for file in store.files()]
    assert names == ["1 twin", "3", "3 twin", "5", "5 twin", "moved"]
    assert not store.pending()
    assert not store.db.rows("SELECT 1 FROM sqlite_master WHERE name = 'new_postings'")
    assert [path.name.split("-")[0] for path in sorted(folder.glob("*.bin"))] == ["tokens", "vectors"]
    assert len(Index.open(folder).search("river", top=200, mode="bm25")) == 120


def test_a_kill_before_any_step_loses_nothing_and_work_is_not_done_twice(tmp_path: Path) -> None:
    draw, folder, said = random.Random(5), tmp_path / "index", list[str]()
    most, kills = 24, 0
    while said[-1:] != ["done all"]:
        process = started(folder, draw.randrange(1, most))
        lines = ended(process, folder)
        said += lines
        kills += process.returncode != 0
        if not lines:  # a transaction may need more steps than this
            most *= 2
        assert kills < 60
    assert kills > 5
    steps = [line for line in said if line != "done all"]
    assert sorted(set(steps)) == sorted(steps), "work was done twice"
    check_finished(folder)


def test_a_kill_at_any_moment_leaves_the_index_whole(tmp_path: Path) -> None:
    draw, folder, kills = random.Random(7), tmp_path / "index", 0
    for _ in range(12):
        process = started(folder, 0)
        assert process.stdout is not None
        first = process.stdout.readline()  # it is at work
        time.sleep(draw.random() * 0.02)
        process.kill()
        ended(process, folder, first)
        kills += process.returncode != 0
    assert kills > 2
    ended(started(folder, 0), folder)
    check_finished(folder)


RUN = """
import sys, unit.search.folders as f, longspan.search.index as i, longspan.search.writer as w
w.GROUP = 1
with i.Index.open(sys.argv[1], f.tiny()) as index:
    print(index.add(sys.argv[2], progress=False).read)
"""


def test_a_killed_run_leaves_an_index_that_goes_on_reading(tmp_path: Path) -> None:
    docs, folder = filled(tmp_path / "docs", 8), tmp_path / "index"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", RUN, str(folder), str(docs)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    while process.poll() is None and _n_read(folder) == 0:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    with Index.open(folder, tiny()) as index:
        index.verify()
        known = _n_read(folder)
        assert len(index.files) == 8
        assert 0 < known < 8
        assert len(index.search("the river")) > 0
        assert index.embed().read == 8 - known
        index.verify()
        whole = Index.open(tmp_path / "other", tiny())
        whole.add(docs)
        found, expected = (each.search("the river", mode="dense") for each in (index, whole))
        assert [(hit.file, hit.start) for hit in found] == [(hit.file, hit.start) for hit in expected]


def _n_read(folder: Path) -> int:
    """Documents that the model has read so far."""
    if not (folder / "index.sqlite").exists():
        return 0
    with Index.open(folder) as index:
        return sum(entry.n_tokens is not None for entry in index._store.entries())
