"""Three writers, five readers, rebuilds and kills on one index: nothing is lost, nothing wrong is found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def stressed(folder: Path, seconds: float) -> dict[str, int]:
    """What was done in some seconds; nothing of it was wrong."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "unit.search.stress", str(folder), str(seconds)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    done: dict[str, int] = json.loads(result.stdout)
    return done


def test_for_some_seconds(tmp_path: Path) -> None:
    done = stressed(tmp_path, 4)
    assert done["kills"] > 3
    assert done["searches"] > 10


@pytest.mark.slow
def test_for_a_minute(tmp_path: Path) -> None:
    done = stressed(tmp_path, 60)
    assert done["kills"] > 15
    assert done["updates"] > 10
    assert done["rebuilds"] > 1
    assert done["searches"] > 100
    print(done)
