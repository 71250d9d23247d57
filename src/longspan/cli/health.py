"""What `longspan doctor` finds out about this machine and this installation."""

import os
import platform
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from longspan import native as native_core
from longspan._version import __version__
from longspan.engine.backends import BACKENDS, load
from longspan.engine.backends.base import DTYPES, Problem
from longspan.engine.call import attention
from longspan.engine.plan import Plan, plan
from longspan.layout import Layout
from longspan.patterns import GlobalTokens, Window

HEADS, SIZE = 4, 64
REPAIR = (
    "Install a C++20 compiler (such as g++), then install Longspan again with "
    "`pip install --force-reinstall --no-deps --no-cache-dir`; add `-v` to read what the build says."
)


def examine() -> dict[str, Any]:
    """Everything the doctor reports, as plain JSON values."""
    trial = plan(Window(128) | GlobalTokens(), Layout.packed([1024], marked=[[0]]), heads=HEADS)
    return {
        "versions": {
            "longspan": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
        },
        "cpu": cpu(),
        "native": native(),
        "threads": threads(),
        "backends": backends(trial),
        "trial": try_out(trial),
    }


def cpu() -> dict[str, Any]:
    """Model, cores, the features that matter here, and whether AMX is absent, works or traps."""
    text = _read("/proc/cpuinfo")
    model = re.search(r"^model name\s*: (.*)", text, re.MULTILINE)
    flags = re.search(r"^flags\s*: (.*)", text, re.MULTILINE)
    features = {flag for flag in (flags[1] if flags else "").split() if re.match(r"avx|fma|f16c|amx", flag)}
    amx = "unknown" if any(flag.startswith("amx") for flag in features) else "absent"
    core = native_core.core()
    if core is not None:  # else what the operating system says has to do
        features = {name for name, present in core.features().items() if present}
        amx = core.amx_state()
    return {
        "model": model[1] if model else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "features": sorted(features),
        "amx": amx,
    }


def native() -> dict[str, Any]:
    """Which instruction sets the native core has and uses; if it is missing, why and what to do."""
    try:
        core = native_core.load()
    except ImportError as error:
        return {"available": False, "reason": f"{_origin()} ({error})", "repair": REPAIR}
    supported = core.targets()
    return {
        "available": True,
        "target": supported[0],
        "supported": supported,
        "compiled": core.compiled_targets(),
    }


def threads() -> dict[str, Any]:
    """How many threads torch and the native core use, each in a pool of its own."""
    return {"count": torch.get_num_threads()}


def backends(trial: Plan) -> dict[str, dict[str, list[str]]]:
    """For each backend and dtype the reasons to refuse a plain window; none means it serves."""
    table: dict[str, dict[str, list[str]]] = {}
    for name in BACKENDS:
        table[name] = {}
        for dtype in DTYPES:
            x = torch.zeros(trial.queries.size, HEADS, SIZE, dtype=dtype)
            problem = Problem(x, x, x, trial.arrays, SIZE**-0.5)
            table[name][str(dtype).removeprefix("torch.")] = load(name).refuses(problem)
    return table


def try_out(trial: Plan) -> dict[str, dict[str, Any]]:
    """Each backend on one small float32 attention: error against float64, and speed."""
    generator = torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, trial.queries.size, HEADS, SIZE, generator=generator)
    exact = attention(q.double(), k.double(), v.double(), trial, backend="dense")
    naive = (attention(q, k, v, trial, backend="dense") - exact).abs().max().item()
    results: dict[str, dict[str, Any]] = {}
    for name in BACKENDS:
        if load(name).refuses(Problem(q, k, v, trial.arrays, SIZE**-0.5)):
            continue
        seconds = []
        for _ in range(5):
            started = perf_counter()
            out = attention(q, k, v, trial, backend=name)
            seconds.append(perf_counter() - started)
        error = (out - exact).abs().max().item()
        results[name] = {
            "error": error,
            "passed": error <= 2 * naive + torch.finfo(q.dtype).eps,
            "milliseconds": 1000 * min(seconds),
            "gflops": 4 * SIZE * trial.pairs_allowed / min(seconds) / 1e9,
        }
    return results


def _origin() -> str:
    """Whether this installation was made without the native core, or has one that does not load."""
    try:
        pure = "Root-Is-Purelib: true" in (distribution("longspan").read_text("WHEEL") or "")
    except PackageNotFoundError:
        return "Longspan is not installed, only found on the path"
    return "it could not be built when Longspan was installed" if pure else "it cannot be loaded"


def _read(path: str) -> str:
    """A file of the operating system, empty where there is none."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
