"""Memory that runs out is an error of Python, never the end of the process, and the next call is right."""

import json
import os
import subprocess
import sys

import pytest

from longspan import native

STARVED = r"""
import json, re, resource, threading
from collections import Counter
from pathlib import Path
import torch
import longspan as ls
from longspan.patterns import Full, Window

torch.set_num_threads(1)

def space():
    return 1024 * int(re.search(r"VmSize:\s*(\d+)", Path("/proc/self/status").read_text())[1])

def attempt(call, kilobytes):
    ready, go, found = threading.Event(), threading.Event(), []

    def work():  # a thread of its own has no scratch memory yet
        ready.set()
        go.wait()
        try:
            found.append(call())
        except (MemoryError, RuntimeError) as error:
            found.append(type(error).__name__)

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    resource.setrlimit(resource.RLIMIT_AS, (space() + (kilobytes << 10), resource.RLIM_INFINITY))
    go.set()
    thread.join()
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return found[0]

outcomes = Counter()
for pattern, rows, keys in ((Full(), 4, 64 * 70), (Window(64), 500, 500)):
    plan = ls.plan(pattern, ls.Layout.packed([rows]), ls.Layout.packed([keys]), heads=4)
    q, (k, v) = torch.randn(rows, 4, 64, requires_grad=rows == keys), torch.randn(2, keys, 4, 64)

    def call():
        out = ls.attention(q, k, v, plan, backend="native")
        return (out, *torch.autograd.grad(out.sum(), q)) if q.requires_grad else (out,)

    expected = call()
    for kilobytes in (*range(0, 4096, 128), 65536):
        found = attempt(call, kilobytes)
        outcomes[found if isinstance(found, str) else "right"] += 1
        for results in (call(), *([] if isinstance(found, str) else [found])):
            assert all(torch.equal(a, b) for a, b in zip(results, expected)), kilobytes
print(json.dumps(outcomes))
"""
SCARCE = {"MALLOC_MMAP_THRESHOLD_": "4096", "MALLOC_ARENA_MAX": "1"}
"""Every piece of memory is asked of the system, which keeps to the limit."""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space, and reads /proc")
@pytest.mark.skipif(native.core() is None, reason="the native core is not built")
def test_memory_that_runs_out_is_an_error_and_the_next_call_is_right() -> None:
    command = [sys.executable, "-c", STARVED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | SCARCE)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["MemoryError"] > 0, "of the kernel"
    assert found["RuntimeError"] > 0, "of torch"
    assert found["right"] > 0, "with room enough"
