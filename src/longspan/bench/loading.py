"""How long a model takes from its folder to the first output, in fresh processes."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, processors

from longspan.bench.bars import figures, seconds, timings
from longspan.bench.measure import Round, Turn, noting, printed
from longspan.bench.progress import step
from longspan.bench.report import Report
from longspan.checkpoints.save import save_model
from longspan.families.longformer.model import LongformerConfig
from longspan.tasks.registry import build
from longspan.text.tokenizer import Tokenizer

BASE = LongformerConfig()
FIRST_OUTPUT = """
import sys, time
import torch
torch.set_num_threads(int(sys.argv[2]))
started = time.perf_counter()
import longspan
longspan.load(sys.argv[1], task="encode").encode(["The quick brown fox jumps over the lazy dog."])
print(time.perf_counter() - started)
"""
"""What a fresh process does; only torch is there when the clock starts."""


@dataclass(frozen=True)
class LoadCase:
    """Seconds from a safetensors folder to the vector of a short text, after `import torch`."""

    name: str
    bar: float
    config: LongformerConfig = BASE

    def measure_into(self, report: Report, rounds: int) -> None:
        """Add the figure; the folder has just been written, so it is in the page cache."""
        results: list[Round] = []
        missing: dict[str, str] = {}
        with tempfile.TemporaryDirectory() as folder:
            step("writing the model")
            write(self.config, Path(folder))
            with noting(missing, "ours"):
                first_output(folder)  # compiles what Python keeps compiled
                results += [{"ours": Turn(first_output(folder), 0.0)} for _ in range(rounds)]
        bars = [seconds("seconds to the first output", self.bar)]
        report.add(figures(self.name, bars, results, missing), timings(self.name, results))


def first_output(folder: str) -> float:
    """Seconds in a fresh process."""
    return float(printed("-c", FIRST_OUTPUT, folder, str(torch.get_num_threads())))


def write(config: LongformerConfig, folder: Path) -> None:
    """A model with random weights and a tokenizer as large as its vocabulary."""
    save_model(build(config, "encode"), folder)
    tokenizer(config.vocab_size).save(folder)


def tokenizer(size: int) -> Tokenizer:
    """Byte pairs like RoBERTa's, but merged as they come: bytes, then pairs of bytes, up to `size` tokens.

    >>> tokenizer(300).encode("ab").ids.tolist()
    [0, 69, 70, 2]
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    room = size - len(special) - len(alphabet)
    pairs = [(a, b) for a in reversed(alphabet) for b in alphabet][:room]
    tokens = [*special, *alphabet, *map("".join, pairs)]
    model = models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=pairs)
    backend = tokenizers.Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    backend.add_special_tokens(special)
    names = dict(zip(("cls", "pad", "sep", "unk", "mask"), special, strict=True))
    return Tokenizer(backend, names)
