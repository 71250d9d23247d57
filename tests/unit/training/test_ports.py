"""Who can reach a run: nobody if it is one process, and only this machine if there are several on it."""

import subprocess
import sys
from pathlib import Path

import pytest

from unit.training.ports import listening
from unit.training.test_kills import environment, torchrun
from unit.training.test_run import trained

pytestmark = pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="needs /proc")
LOOPBACK = {"0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F"}


def test_a_run_of_one_process_opens_no_port(tmp_path: Path) -> None:
    before = listening()
    trained(tmp_path)
    assert listening() == before


def test_the_processes_of_a_machine_listen_to_it_alone() -> None:
    words = [sys.executable, *torchrun(2), "-m", "unit.training.ports"]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    told = [line.split()[2:] for line in done.stdout.splitlines() if line.startswith("listens at")]
    assert len(told) == 2
    assert all(addresses and {*addresses} <= LOOPBACK for addresses in told)
