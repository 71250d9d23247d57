"""An index survives: kills at every step and inside commits, flipped bytes, and disks that refuse."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from longspan.errors import LongspanError
from longspan.search.index import Index
from longspan.search.records import File, Row
from longspan.search.store import Store

POSIX = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
COUNT = 6
WORK = """
import os, signal, sys
from pathlib import Path
import numpy as np
from longspan.search.database import Database
from longspan.search.records import File, Row
from longspan.search.store import Store

left = int(sys.argv[2])

def counted(owner, name):
    call = getattr(owner, name)
    def dying(*given, **named):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*given, **named)
    setattr(owner, name, dying)

for owner, name in ((os, "fsync"), (Database, "do"), (Database, "do_many"), (Path, "unlink")):
    counted(owner, name)
store = Store(Path(sys.argv[1]))
for number in range(6):
    known = {file.path.name for file in store.files()}
    if str(number) in known or "moved" in known:
        continue
    group = []
    for name in (str(number), f"{number} twin"):
        file = File(path=Path("/", name), size=1, mtime=number, digest=name.encode())
        rows = [Row(0, 9, None, 1, f"river {name} {i}") for i in range(20)]
        group.append((file, np.full((21, 8), number + 0.5, np.float32), rows))
    with store.db.transaction():
        store.add(group)
    print(number, flush=True)
if "moved" not in known:
    with store.db.transaction():
        store.remove([file.path for file in store.files() if file.path.name[0] in "024"])
        store.move(Path("/1"), File(path=Path("/moved"), size=1, mtime=1, digest=b"1"))
    print("moved", flush=True)
store.compact()
print("done", flush=True)
"""


def started(folder: Path, left: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WORK, str(folder), str(left)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str], folder: Path) -> list[str]:
    """What a process said before it ended; the index is whole and holds all of it."""
    said, wrong = process.communicate()
    assert process.returncode in (0, -signal.SIGKILL), wrong
    store = Store(folder)
    store.verify()
    known = {file.path.name for file in store.files()}
    for word in said.split():
        assert "moved" in known or {word, f"{word} twin"} <= known
    for file in store.files():
        rows = store.vectors()[file.slot : file.slot + 21]
        assert (rows == int(file.path.name[0].replace("m", "1")) + 0.5).all()
    store.db.close()
    return said.split()


def check_finished(folder: Path) -> None:
    store = Store(folder)
    assert [file.path.name for file in store.files()] == ["moved", "1 twin", "3", "3 twin", "5", "5 twin"]
    assert [path.name for path in folder.glob("vectors-*")] == ["vectors-1.f16"]
    assert len(Index.open(folder).search("river", top=200, mode="bm25")) == 120


@POSIX
def test_a_kill_before_any_step_loses_nothing_and_work_is_not_done_twice(tmp_path: Path) -> None:
    draw, folder, said = random.Random(5), tmp_path / "index", list[str]()
    for _ in range(200):
        # A run needs some steps to look at what is there before it can go on.
        said += ended(
            started(folder, draw.randrange(1, 40) if len(said) < 7 else draw.randrange(1, 400)), folder
        )
        if said[-1:] == ["done"]:
            break
    assert said[-1] == "done"
    steps = [word for word in said if word != "done"]
    assert sorted(set(steps)) == sorted(steps), "work was done twice"
    check_finished(folder)


@POSIX
def test_a_kill_at_any_moment_leaves_the_index_whole(tmp_path: Path) -> None:
    draw, folder = random.Random(7), tmp_path / "index"
    for _ in range(12):
        process = started(folder, 0)
        while process.poll() is None and not (folder / "index.sqlite").exists():
            time.sleep(0.001)
        time.sleep(draw.random() * 0.03)
        process.kill()
        ended(process, folder)
    ended(started(folder, 0), folder)
    check_finished(folder)


def test_a_flipped_byte_of_the_database_is_never_more_than_an_error_of_ours(tmp_path: Path) -> None:
    folder, draw = tmp_path / "index", random.Random(2)
    store = Store(folder)
    for number in range(COUNT):
        rows = [Row(0, 9, None, 1, f"river {number} {i} " + "é" * i) for i in range(30)]
        file = File(path=Path(f"/{number}"), size=1, mtime=1, digest=b"x")
        with store.db.transaction():
            store.add([(file, np.eye(31, 8, dtype=np.float32), rows)])
    store.db.close()
    path = folder / "index.sqlite"
    whole = path.read_bytes()
    told = []
    for _ in range(120):
        data = bytearray(whole)
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        path.write_bytes(data)
        try:
            with Index.open(folder) as index:
                index.search("river 3", mode="bm25")
                index.verify()
        except LongspanError as error:
            told.append(str(error))
    assert len(told) > 20, "most bytes of a small database are in use"
    assert all("ebuild" in words or "cannot be used" in words for words in told)
