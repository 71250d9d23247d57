"""What the experiments with masked language models share: figures that are kept, bits, and tables."""

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from longspan.corpus.spelling import Spelling
from longspan.corpus.store import Corpus
from longspan.recipes.mlm import evaluate_masked
from longspan.recipes.pretrain_plan import PretrainConfig, Pretraining
from longspan.recipes.start import Start

SIZES = {
    "layers": 4,
    "width": 256,
    "heads": 4,
    "feed_forward": 1024,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
"""Of all models. Runs see their data about once, so that nothing needs to be dropped."""
HELD_OUT = 0.1
"""The share of documents that nothing is trained on."""
WATCHED = 32_768
"""Tokens of the evaluations inside of a run, at most; it makes eleven."""
TOKEN, CHARACTER = "bits_per_token", "bits_per_character"
Run = dict[str, Any]


def parser(about: str | None) -> argparse.ArgumentParser:
    """What every experiment is told: where its runs are, how many there are, and how large."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = made.add_argument
    add("--out", type=Path, required=True, help="where corpus, models and runs are kept")
    add("--seeds", type=int, default=2, help="runs of each variant (default: 2)")
    add("--batch-tokens", type=int, default=8192, help="of an update of pretraining (default: 8192)")
    add("--eval-tokens", type=int, default=400_000, help="held-out tokens, at most (default: 400000)")
    add("--json", type=Path, help="write the figures of all runs so far")
    return made


def plan(options: argparse.Namespace, **settings: Any) -> PretrainConfig:
    """A pretraining run of an experiment."""
    watched = min(WATCHED, options.eval_tokens)
    usual: dict[str, Any] = {"dev": HELD_OUT, "dev_tokens": watched, "batch_tokens": options.batch_tokens}
    return PretrainConfig(**usual | settings)


def kept(folder: Path, settings: Mapping[str, object], measure: Callable[[], Mapping[str, float]]) -> Run:
    """The figures of a run, from its folder if it is done; a run with other settings is an error."""
    path, wanted = folder / "figures.json", json.loads(json.dumps(settings))
    if path.is_file():
        found: Run = json.loads(path.read_text())
        if found["settings"] != wanted:
            raise SystemExit(f"{folder} is a run with {found['settings']}, not {wanted}. Use another --out.")
        return {**found["figures"], "settings": wanted}
    began = time.monotonic()
    figures = {"seconds": 0.0, **measure()}
    figures["wall"] = time.monotonic() - began
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"settings": wanted, "figures": figures}, indent=1) + "\n")
    return {**figures, "settings": wanted}


def held_out_bits(start: Start, corpus: Corpus, length: int, most: int) -> dict[str, float]:
    """Bits for each masked token, and for each character, of held-out documents read in such lengths.

    Masks are those of seed 0, whatever the seed of the training: seeds then differ by what was learnt.
    """
    plan = Pretraining(start, corpus, PretrainConfig(steps=1, length=length, dev=HELD_OUT))
    held = plan.splits[1]
    if held is None:
        raise SystemExit("A single document leaves none to evaluate on. Give more --data.")
    found = evaluate_masked(held, most_tokens=most)(start.model.eval())
    return {name: found[name] for name in (TOKEN, CHARACTER)}


def unigram_bits(corpus: Corpus) -> dict[str, float]:
    """The same for a guess by frequency alone: a model that is no better has not learnt to read."""
    training, held = corpus.split(HELD_OUT)
    counts, seen = (
        np.bincount(np.concatenate([corpus.document(int(n)) for n in own]), minlength=corpus.vocab_size)
        for own in (training, held)
    )
    bits = float(-(seen * np.log2((counts + 1) / (counts + 1).sum())).sum())
    characters = int((seen * Spelling.of(corpus.tokenizer).characters).sum())
    return {TOKEN: bits / int(seen.sum()), CHARACTER: bits / characters}


def table(runs: Sequence[Run], columns: Sequence[str]) -> str:
    """Mean and deviation of each variant, in the order of their first runs."""
    lines = [" ".join([f"{'variant':46} seeds", *(f"{name:>19} {'dev':>6}" for name in columns), "seconds"])]
    for variant in dict.fromkeys(run["variant"] for run in runs):
        own = [run for run in runs if run["variant"] == variant]
        cells = [f"{variant:46} {len(own):5}"]
        for name in columns:
            values = [run[name] for run in own if name in run]
            mean = statistics.mean(values) if values else math.nan
            spread = f"{statistics.stdev(values):6.3f}" if len(values) > 1 else " " * 6
            cells.append(f"{mean:19.3f} {spread}")
        cells.append(f"{statistics.mean(run.get('seconds', 0.0) for run in own):7.0f}")
        lines.append(" ".join(cells))
    return "\n".join(lines)


def write(path: Path | None, settings: Mapping[str, object], runs: Sequence[Run]) -> None:
    """The runs so far as JSON, if that is wanted."""
    if path is not None:
        path.write_text(json.dumps({**settings, "runs": runs}, indent=1, default=str) + "\n")
