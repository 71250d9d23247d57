"""Refusing takes little time and memory, and does nothing else: watched by an audit hook."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from malicious import pickles
from malicious.containers import in_legacy, in_zip
from malicious.headers import GOOD, headers
from malicious.zips import zips

WATCHED = r"""
import codecs, json, re, sys, time
from pathlib import Path
import torch, safetensors.torch
from longspan.formats.weights import open_weights
from longspan.errors import CheckpointError

corpus = Path(sys.argv[1])
dict(open_weights(corpus / "good-zip")), dict(open_weights(corpus / "good-safe"))
codecs.lookup("raw-unicode-escape")  # Python imports it when it first meets an old word
events, watching = [], False
NOISY = ("import", "exec", "compile", "subprocess.", "os.", "socket.", "ctypes.", "pickle.find_class")
HARMLESS = ("os.scandir", "os.listdir")
def watch(event, arguments):
    if watching and event.startswith(NOISY) and event not in HARMLESS:
        events.append(f"{event} {arguments[:1]}")
    if watching and event == "open" and str(arguments[1]) not in ("r", "rb", "None"):
        events.append(f"{event} {arguments}")
sys.addaudithook(watch)

def peak():
    return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1])

Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
before = peak()
refused, times = 0, []
for folder in sorted(path for path in corpus.iterdir() if path.name.startswith("bad")):
    started = time.perf_counter()
    watching = True
    try:
        dict(open_weights(folder))
    except CheckpointError as error:
        refused += 1
        assert len(str(error)) < 1000, folder
    watching = False
    times.append((time.perf_counter() - started, folder.name))
grown = peak() - before
times.sort()
found = {"refused": refused, "events": events, "grown": grown / 1024}
print(json.dumps({**found, "slowest": times[-1], "median": times[len(times) // 2][0]}))
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for each file: good ones to warm up with, and all bad ones."""
    folder = tmp_path_factory.mktemp("corpus")
    target = folder / "executed"
    bad = pickles.calls(target) | pickles.ways(target) | pickles.exhausting() | pickles.tensors()
    files = {
        "good-zip": ("pytorch_model.bin", in_zip(pickles.well_formed())),
        "good-safe": ("model.safetensors", GOOD),
    }
    files |= {f"bad-zip-{case}": ("pytorch_model.bin", in_zip(code)) for case, code in bad.items()}
    files |= {f"bad-legacy-{case}": ("pytorch_model.bin", in_legacy(code)) for case, code in bad.items()}
    files |= {f"bad-container-{case}": ("pytorch_model.bin", data) for case, data in zips().items()}
    files |= {f"bad-header-{case}": ("model.safetensors", data) for case, data in headers().items()}
    for case, (name, data) in files.items():
        (folder / case.replace("/", " ")).mkdir()
        (folder / case.replace("/", " ") / name).write_bytes(data)
    return folder


def test_refusing_runs_nothing_and_stays_small(corpus: Path, note: Callable[[str], None]) -> None:
    command = [sys.executable, "-W", "error", "-c", WATCHED, str(corpus)]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    (slowest, case), grown = found["slowest"], found["grown"]
    note(f"slowest {slowest:.2f} s ({case}), median {found['median'] * 1e3:.1f} ms, memory +{grown:.0f} MB")
    assert found["refused"] == sum(path.name.startswith("bad") for path in corpus.iterdir())
    assert not found["events"]
    assert not (corpus / "executed").exists()
    assert grown < 64, "MB"
    assert found["median"] < 0.05, "seconds"
    assert slowest < 5, "seconds"
