"""Files are written whole or not at all, by several processes at once, and by no plan of a stranger."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from longspan.errors import CheckpointError, LongspanError
from longspan.formats import atomic
from longspan.formats.atomic import PLAN, READY, replaced_file, replaced_files, settled, write_text

NAMES = ("a.json", "b.json", "1_Pooling/config.json")
SAVE = """
import sys, time
from pathlib import Path
from longspan.formats.atomic import replaced_files

folder = Path(sys.argv[1])
for number in range(10**6):
    if (folder.parent / "stop").exists():
        break
    time.sleep(0.002)  # lets others have the lock
    with replaced_files(folder, owns=lambda name: name.endswith(".json"), last="b.json") as fresh:
        (fresh / "1_Pooling").mkdir()
        for name in ("a.json", "b.json", "1_Pooling/config.json"):
            (fresh / name).write_text(f"{sys.argv[2]} {number}")
"""


def save(folder: Path, text: str) -> None:
    with replaced_files(folder, owns=lambda name: name.endswith(".json"), last="b.json") as fresh:
        (fresh / "1_Pooling").mkdir()
        for name in NAMES:
            (fresh / name).write_text(text)


def test_a_file_is_replaced_or_left_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    write_text(file, "old")
    with suppress(ZeroDivisionError), replaced_file(file) as temporary:
        temporary.write_text("half")
        _ = 1 / 0
    assert file.read_text() == "old"
    write_text(file, "new\n")
    assert file.read_bytes() == b"new\n"
    assert os.listdir(tmp_path) == ["report.md"]


def test_a_failure_leaves_no_new_folder_behind(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), replaced_files(tmp_path / "new", owns=bool, last="b.json"):
        _ = 1 / 0
    assert os.listdir(tmp_path) == []


def test_whoever_reads_while_others_save_sees_the_files_of_one_save(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    save(folder, "0")
    savers = [subprocess.Popen([sys.executable, "-c", SAVE, str(folder), name]) for name in "xy"]
    seen, end = set[str](), time.monotonic() + 60
    while len(seen) < 9 and time.monotonic() < end:
        with settled(folder):
            texts = {(folder / name).read_text() for name in NAMES}
        assert len(texts) == 1
        seen |= texts
        time.sleep(0.001)
    (tmp_path / "stop").touch()
    assert [saver.wait(60) for saver in savers] == [0, 0]
    assert len(seen) == 9
    assert sorted(os.listdir(folder)) == ["1_Pooling", "a.json", "b.json"]


def test_what_a_killed_process_was_writing_is_removed_by_the_next_but_not_what_a_living_one_writes(
    tmp_path: Path,
) -> None:
    (tmp_path / f"{READY}-dead").mkdir()
    with replaced_files(tmp_path, owns=bool, last="b.json") as living:
        save(tmp_path, "meanwhile")
        assert living.is_dir()
        assert not (tmp_path / f"{READY}-dead").exists()


def test_a_folder_that_another_process_keeps_busy_is_an_error_in_the_end(tmp_path: Path) -> None:
    busy = pytest.raises(LongspanError, match="is being saved by another process")
    with settled(tmp_path), busy, atomic._locked(tmp_path, wait=0.05):
        pass


@pytest.mark.parametrize(
    "plan",
    [
        {"files": ["../stolen.json"], "remove": [], "last": "b.json"},
        {"files": [], "remove": ["../victim.txt"], "last": "b.json"},
        {"files": [], "remove": ["/etc/passwd"], "last": "b.json"},
        {"files": [], "remove": [], "last": "../victim.txt"},
        {"files": [], "remove": ["1_link/victim.txt"], "last": "b.json"},
        {"files": [7], "remove": [], "last": "b.json"},
        {"files": "b.json", "remove": [], "last": "b.json"},
        {},
    ],
    ids=str,
)
def test_the_plan_of_a_stranger_reaches_nothing_outside_its_folder(
    plan: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "victim.txt").write_text("mine")
    folder = tmp_path / "model"
    (folder / READY).mkdir(parents=True)
    (folder / "1_link").symlink_to(tmp_path)
    (folder / READY / PLAN).write_text(json.dumps(plan))
    with pytest.raises(CheckpointError, match=r"is refused: it .*Remove "), settled(folder):
        pass
    assert sorted(os.listdir(tmp_path)) == ["model", "victim.txt"]


def test_a_link_in_the_place_of_a_save_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / READY).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointError, match="it is a link"), settled(tmp_path / "model"):
        pass
