"""The doctor's words, also on machines unlike this one."""

import subprocess
import sys
from typing import Any
from unittest.mock import Mock

import pytest

from longspan import native
from longspan.cli import health, main
from longspan.cli.doctor import lines


@pytest.fixture
def report() -> dict[str, Any]:
    """A healthy machine."""
    return {
        "versions": {"longspan": "1.2.3", "python": "3.11.7"},
        "cpu": {"model": "Some CPU", "cores": 2, "features": ["avx2", "fma"], "amx": "absent"},
        "native": {
            "available": True,
            "target": "avx2",
            "supported": ["avx2", "scalar"],
            "compiled": ["avx512", "avx2", "scalar"],
        },
        "threads": {"count": 2},
        "backends": {"native": {"float32": [], "float64": ["float64 is not supported"]}},
        "trial": {"native": {"error": 1e-7, "passed": True, "milliseconds": 1.0, "gflops": 100.0}},
    }


def text(report: dict[str, Any]) -> str:
    return "\n".join(lines(report))


def without_native_core(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = "No module named 'longspan._native'"
    monkeypatch.setattr(native, "_loaded", lambda: reason)


def installed_as(monkeypatch: pytest.MonkeyPatch, wheel: str) -> None:
    """Pretend that the native core is missing from an installation made by such a wheel."""
    without_native_core(monkeypatch)
    monkeypatch.setattr(health, "distribution", lambda name: Mock(read_text=lambda name: wheel))


def test_a_healthy_machine_is_told_so(report: dict[str, Any]) -> None:
    words = text(report)
    assert "native core   avx2 (compiled: avx512, avx2, scalar)" in words
    assert "threads       2" in words
    assert "native refuses: float64 is not supported" in words
    assert "ok, error 1.0e-07, 1.00 ms, 100.0 GFLOP/s" in words


def test_amx_that_traps_is_warned_of(report: dict[str, Any]) -> None:
    report["cpu"]["amx"] = "traps"
    assert "advertised, but traps" in text(report)


PROBE = """
import os, signal, sys, threading, time
signal.alarm(60)
from longspan import native
if sys.argv[1] == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
else:
    if os.fork() == 0:  # something to wait for
        time.sleep(60)
    def reap():
        while True:
            os.waitpid(-1, 0)
    threading.Thread(target=reap, daemon=True).start()
    time.sleep(0.1)
print(native.load().amx_state(), flush=True)
os.kill(0, signal.SIGKILL)
"""


@pytest.mark.skipif(native.core() is None, reason="the native core is not built")
@pytest.mark.parametrize("children", ["ignored", "reaped"])
def test_amx_is_examined_where_somebody_else_takes_the_children(children: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROBE, children],
        stdout=subprocess.PIPE,
        timeout=90,
        check=False,
        start_new_session=True,
    )
    assert found.stdout.decode().strip() == native.load().amx_state()


def test_a_wrong_result_is_called_wrong(report: dict[str, Any]) -> None:
    report["trial"]["native"]["passed"] = False
    assert "WRONG, error" in text(report)


def test_a_wrong_result_fails(report: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    report["trial"]["native"]["passed"] = False
    monkeypatch.setattr(health, "examine", lambda: report)
    assert main(["doctor"]) == 1


def test_a_missing_native_core_is_explained(report: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    installed_as(monkeypatch, "Root-Is-Purelib: true")
    report["native"] = health.native()
    words = text(report)
    assert "missing: it could not be built when Longspan was installed (" in words
    assert "The portable backend is in use" in words
    assert "Install a C++20 compiler" in words


def test_a_native_core_that_does_not_load_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    installed_as(monkeypatch, "Root-Is-Purelib: false")
    assert health.native()["reason"].startswith("it cannot be loaded (")


def test_the_cpu_is_known_without_the_native_core(monkeypatch: pytest.MonkeyPatch) -> None:
    without_native_core(monkeypatch)
    flags = "model name\t: Some CPU\nflags\t\t: fpu avx2 fma amx_tile\n"
    monkeypatch.setattr(health, "_read", lambda path: flags)
    found = health.cpu()
    assert (found["model"], found["features"]) == ("Some CPU", ["amx_tile", "avx2", "fma"])
    assert found["amx"] == "unknown"
