"""What `make wheel` runs in a clean environment: the core agrees with the oracle, the counter counts."""

import torch

import longspan as ls
from longspan import _postings, native
from longspan.patterns import GlobalTokens, Window

layout = ls.Layout.packed([300, 71], marked=[[0], [5]])
plan = ls.plan(Window(64) | GlobalTokens(), layout, heads=3)
q, k, v = torch.randn(3, layout.size, 3, 64, requires_grad=True).unbind()
results = []
for backend in ("native", "tiled", "dense"):
    out = ls.attention(q, k, v, plan, backend=backend)
    results.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v))))
for result in results[:2]:
    for found, expected in zip(result, results[2], strict=True):
        torch.testing.assert_close(found, expected)
assert _postings.count(["one two one"], 64).words == ["one", "two"]
print(f"the wheel works: native targets {', '.join(native.targets())}")
