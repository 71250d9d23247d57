"""Model folders of several families and formats, damaged: configs, weights, indexes of shards."""

import copy
import json
import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch

import longspan
from fuzz.harness import campaign
from fuzz.mutations import mutated, mutated_json
from longspan.formats.weights import open_weights
from unit.tasks import tiny

TASKS = (("longformer", "encode"), ("bigbird", "classify"), ("bert", "encode"), ("etc", "encode"))
WORDS = (
    b'"shape":[',
    b"[2,3]",
    b"F64",
    b"data_offsets",
    b"\x80\x02",
    b"cos\nsystem\n",
    b"tR.",
    b"PK\1\2",
    b"}",
    b"\0",
)
TEXTS = ["Anna lives in Rome.", ""]


@cache
def good() -> tuple[tuple[str, dict[str, bytes]], ...]:
    """(task, files) of good folders: safetensors, one with shards, torch's zip and its format before that."""
    torch.set_num_threads(1)
    folders = []
    for family, task in TASKS:
        with tempfile.TemporaryDirectory() as place:
            tiny.reader(family, task).save(place)
            folders.append((task, _files(Path(place))))
            tensors = {name: tensor.clone() for name, tensor in open_weights(Path(place)).items()}
            for modern in (True, False):
                path = Path(place, "pytorch_model.bin")
                torch.save(tensors, path, _use_new_zipfile_serialization=modern)
                files = _files(Path(place))
                del files["model.safetensors"]
                folders.append((task, files))
    return tuple(folders)


def _files(folder: Path) -> dict[str, bytes]:
    """All but the tokenizer's."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "tokenizer" not in path.name]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@cache
def _parsed(data: bytes) -> Any:
    return json.loads(data)


def make(draw: random.Random, folder: Path) -> None:
    """A folder of which one or two files are damaged."""
    task, good_files = draw.choice(good())
    files = dict(good_files)
    weights = [name for name in files if name.endswith((".safetensors", ".bin"))]
    for name in draw.sample(sorted(files), draw.choice((1, 1, 2))):
        if name.endswith(".json") and draw.random() < 0.85:
            files[name] = json.dumps(mutated_json(copy.deepcopy(_parsed(files[name])), draw)).encode()
        elif name in weights:
            files[name] = _weights(files[name], draw)
        else:
            files[name] = mutated(files[name], draw, WORDS)
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "TASK").write_text(task)


def _weights(data: bytes, draw: random.Random) -> bytes:
    """Damage where structure is: the first and last bytes of a file more than its numbers."""
    edge = min(len(data), draw.choice((64, 1024, 8192)))
    where = draw.randrange(3)
    if where == 0:
        return mutated(data[:edge], draw, WORDS) + data[edge:]
    if where == 1:
        return data[:-edge] + mutated(data[-edge:], draw, WORDS)
    return mutated(data, draw, WORDS)


def run(folder: Path) -> None:
    """What is loaded can be used."""
    task = (folder / "TASK").read_text()
    reader = longspan.load(folder, task=task, tokenizer=tiny.tokenizer("longformer"), overflow="window")
    getattr(reader, task)(TEXTS)


def fuzz(seconds: float, seed: int) -> int:
    """How many folders were tried; FuzzError if one failed."""
    return campaign("fuzz.checkpoints", seconds, seed)
