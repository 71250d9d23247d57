"""`longspan bench load`: a short model beside busy threads, against ONNX Runtime and torch."""

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from longspan.bench.bars import Bar, figures, times, timings
from longspan.bench.measure import Missing, Round, Run, using_threads
from longspan.bench.model import runs_table
from longspan.bench.peers import need_transformers
from longspan.bench.processes import take_turns
from longspan.bench.progress import named
from longspan.bench.report import Report, machine
from longspan.errors import whole
from longspan.layout import Layout
from longspan.native import targets

ROUNDS = 9
BUSY = (0, 1, 2, 4)
"""Threads beside us that compute without end."""
TEXTS, LENGTH = 16, 256
PEER = "onnxruntime"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


@dataclass(frozen=True, kw_only=True)
class LoadJob:
    """all-MiniLM-L6-v2 over 16 texts of 256 tokens by one of the SIDES; calling it builds model and input."""

    who: str
    int8: bool = False
    environment: dict[str, str] = field(default_factory=dict)
    warm_up: bool = True

    def __call__(self) -> Run:
        ids = np.random.default_rng(0).integers(1000, 20000, (TEXTS, LENGTH))
        return SIDES[self.who](ids, self.int8)


def run(
    *,
    short: bool = False,
    names: Sequence[str] = (),
    rounds: int | None = None,
    threads: int = 2,
    json: Path | None = None,
) -> None:
    """Print tokens per second at every load, or at the named ones; save them as JSON."""
    count = (3 if short else ROUNDS) if rounds is None else whole("rounds", rounds, 1)
    loads = {f"beside {number} busy": number for number in BUSY}
    with using_threads(whole("threads", threads, 1)):
        report = Report(machine(next(iter(targets()), "none")))
        for name in named(names, loads):
            results: list[Round] = []
            missing: dict[str, str] = {}
            with busy(loads[name]):
                take_turns(jobs(), results, missing, count)
            report.add(figures(name, bars(alone=not loads[name]), results, missing), timings(name, results))
        print(f"{report.table()}\n{runs_table(report.timings)}")
        report.save(json)


def jobs() -> Mapping[str, LoadJob]:
    """All sides, float32 and int8."""
    eight = {f"{who}, int8": LoadJob(who=who, int8=True) for who in ("ours", PEER)}
    return {who: LoadJob(who=who) for who in SIDES} | eight


def bars(*, alone: bool) -> list[Bar]:
    """Tokens per second of each side, and how much faster than ONNX Runtime we are."""
    speeds = [_speed(name) for name in jobs()]
    least = 1.15 if alone else 1.0
    return [
        *speeds,
        times(PEER, least),
        times(f"{PEER}, int8", least, run="ours, int8"),
        times("torch", None),
    ]


def _speed(name: str) -> Bar:
    return Bar(f"{name}, tokens/s", lambda r: TEXTS * LENGTH / r[name].seconds, (name,))


@contextmanager
def busy(threads: int) -> Iterator[None]:
    """So many threads compute beside the block, each in a process of its own."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(threads)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def _folder() -> Path:
    from longspan.builtin import short_folder

    return short_folder()


def _ours(ids: Any, int8: bool) -> Run:
    from longspan.loading import load

    model = load(_folder(), task="encode", precision="int8" if int8 else None).model.eval()
    tokens, layout = torch.from_numpy(ids.reshape(-1)), Layout.packed([LENGTH] * TEXTS)
    return Run(lambda: model.backbone(tokens, layout, torch.zeros_like(tokens)))


def _model() -> Any:
    need_transformers()
    import transformers

    transformers.logging.set_verbosity_error()
    return transformers.AutoModel


def _torch(ids: Any, int8: bool) -> Run:
    model, tokens = _model().from_pretrained(_folder()).eval(), torch.from_numpy(ids)
    return Run(lambda: model(input_ids=tokens, attention_mask=torch.ones_like(tokens)))


def _onnxruntime(ids: Any, int8: bool) -> Run:
    """The model that transformers exports, with every optimization of ONNX Runtime."""
    if find_spec("onnxruntime") is None or find_spec("onnx") is None:
        raise Missing("onnxruntime is not installed: pip install 'longspan[bench]'")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    with tempfile.TemporaryDirectory() as folder:
        file = _exported(Path(folder), int8)
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    feed = dict(zip(INPUTS, (ids, np.ones_like(ids), np.zeros_like(ids)), strict=True))
    return Run(lambda: session.run(None, feed))


class _States(torch.nn.Module):
    """The model with plain arguments and one result, as an export wants it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.model(**dict(zip(INPUTS, inputs, strict=True))).last_hidden_state
        return states


def _exported(folder: Path, int8: bool) -> Path:
    """The model as an ONNX file, in float32, or with weights in int8 and rows quantized as they come."""
    model = _States(_model().from_pretrained(_folder(), attn_implementation="eager").eval())
    example = tuple(torch.full((2, 8), value) for value in (1000, 1, 0))
    options: dict[str, Any] = {
        "input_names": list(INPUTS),
        "output_names": ["states"],
        "dynamic_axes": {name: {0: "texts", 1: "tokens"} for name in (*INPUTS, "states")},
        "opset_version": 17,
        "dynamo": False,
    }
    file = folder / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, example, str(file), **options)
        if not int8:
            return file
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantize_dynamic(str(file), str(folder / "int8.onnx"), weight_type=QuantType.QInt8)
    return folder / "int8.onnx"


SIDES = {"ours": _ours, PEER: _onnxruntime, "torch": _torch}
