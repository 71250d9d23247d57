"""Recipes in processes of their own: `python -m unit.recipes.working RECIPE FOLDER DATA` trains one."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import longspan
from longspan.corpus.store import Corpus
from longspan.recipes.char_lm.phases import RECIPES, Phase
from longspan.recipes.char_lm.train import Settings, train_char_lm
from longspan.recipes.pretrain import pretrain
from longspan.recipes.pretrain_plan import PretrainConfig
from longspan.recipes.start import Start
from longspan.training.optimizer import AdamW

SIZES: dict[str, Any] = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 32}


def finetuned(out: Path, data: Path, *, fsdp: bool = False) -> None:
    """A classifier; the data is a model."""
    texts = [f"{place} {'so on ' * n}" for n in range(1, 7) for place in ("Rome", "London")]
    options: dict[str, Any] = {"validation": 0.25, "steps": 4, "batch_size": 4, "micro_tokens": 20}
    options |= {"optimizer": AdamW(lr=1e-3), "progress": False, "fsdp": fsdp}
    reader = longspan.load(data, task="classify")
    longspan.finetune(reader, texts, labels=["north", "south"] * 6, out=out, **options)


def pretrained(out: Path, data: Path, *, fsdp: bool = False, **changes: Any) -> None:
    """A masked language model of a corpus."""
    corpus = Corpus.open(data)
    start = Start.from_preset("longformer-base", corpus.tokenizer, length=64, changes={**SIZES, "radius": 8})
    amount: dict[str, Any] = {} if "minutes" in changes else {"steps": 4}
    config = PretrainConfig(**amount, **changes, batch_tokens=400, micro_tokens=100, lr=1e-3)
    pretrain(start, corpus, out, config, fsdp=fsdp, progress=False)


def of_bytes(out: Path, data: Path, *, fsdp: bool = False, **changes: Any) -> None:
    """A language model of bytes, in two phases."""
    sizes: dict[str, Any] = {**SIZES, "radius": (4, 8), "dilation": 1}
    phases = (Phase(length=32 * n, radius=(4 * n, 8 * n), lr=1e-2, batch=4, steps=2, end=0.0) for n in (1, 2))
    tiny = RECIPES["tiny"]
    config = replace(tiny.config, **sizes)
    recipe = replace(tiny, config=config, phases=tuple(phases), eval_characters=100)
    train_char_lm(recipe, data, out, Settings(micro_tokens=64, **changes), fsdp=fsdp, progress=False)


TRAINED: dict[str, Callable[[Path, Path], None]] = {
    "finetune": finetuned,
    "pretrain": pretrained,
    "char-lm": of_bytes,
    "finetune, shared": lambda out, data: finetuned(out, data, fsdp=True),
    "pretrain, shared": lambda out, data: pretrained(out, data, fsdp=True),
    "char-lm, shared": lambda out, data: of_bytes(out, data, fsdp=True),
    "pretrain for minutes": lambda out, data: pretrained(out, data, minutes=0.02),
    "char-lm for minutes": lambda out, data: of_bytes(out, data, minutes=0.02),
}


if __name__ == "__main__":
    torch.set_num_threads(1)
    TRAINED[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
