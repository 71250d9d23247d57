"""The ablation of Longformer's table 4 in small: windows that grow, stay or shrink with the layer; dilation.

All variants look back equally far on average, and learn from the same bytes in as many steps, so they take
the same compute. Run it twice with the same options, and it goes on where it was stopped:

    python benchmarks/char_lm_ablation.py --data enwik8.gz --out runs --steps 500 --seeds 3 --json table.json
"""

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

from longspan.recipes.char_lm.phases import RECIPES, Phase, Recipe
from longspan.recipes.char_lm.train import METRIC, Settings, train_char_lm

GROWING = (8, 16, 32, 64, 128, 256)
"""How far six layers look back: the mean is 84."""
FIXED = (84,) * 6
UPPER = (1, 1, 1, (1, 1, 2, 2), (1, 1, 3, 3), (1, 1, 4, 4))
VARIANTS: dict[str, tuple[tuple[int, ...], Any]] = {
    "shrinking windows": (GROWING[::-1], 1),
    "fixed windows": (FIXED, 1),
    "growing windows": (GROWING, 1),
    "growing windows, two dilated heads above": (GROWING, UPPER),
}


def recipe(variant: str, steps: int) -> Recipe:
    """A model of `tiny`'s size in one phase."""
    radius, dilation = VARIANTS[variant]
    tiny = RECIPES["tiny"]
    config = replace(tiny.config, layers=6, heads=4, radius=radius, dilation=dilation)
    phase = Phase(length=1024, radius=radius, lr=2e-3, batch=4, steps=steps, end=0.0)
    return replace(tiny, config=config, phases=(phase,), eval_characters=200_000)


def measured(variant: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Bits per character of one run on the validation split, and what it took."""
    out = options.out / f"{variant.replace(',', '').replace(' ', '-')}-{seed}"
    settings = Settings(seed=seed)
    _, (report,) = train_char_lm(recipe(variant, options.steps), options.data, out, settings, progress=False)
    return {"variant": variant, "seed": seed, METRIC: report.metrics[METRIC], "seconds": report.seconds}


def table(runs: list[dict[str, Any]]) -> str:
    """Mean, deviation and best of each variant."""
    lines = [f"{'variant':42} {'mean':>6} {'dev':>6} {'best':>6} {'seconds':>8}"]
    for variant in VARIANTS:
        own = [run for run in runs if run["variant"] == variant]
        bits = [run[METRIC] for run in own]
        if bits:
            spread = statistics.stdev(bits) if len(bits) > 1 else 0.0
            took = statistics.mean(run["seconds"] for run in own)
            lines.append(
                f"{variant:42} {statistics.mean(bits):6.3f} {spread:6.3f} {min(bits):6.3f} {took:8.0f}"
            )
    return "\n".join(lines)


def main() -> None:
    """Run all variants, seed by seed, and print the table after each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="enwik8, text8 or any text")
    parser.add_argument("--out", type=Path, required=True, help="where the runs are kept")
    parser.add_argument("--steps", type=int, default=500, help="of 4,096 bytes each (default: 500)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    runs = list[dict[str, Any]]()
    for seed in range(options.seeds):
        for variant in VARIANTS:
            runs.append(measured(variant, seed, options))
            print(table(runs), end="\n\n", flush=True)
            if options.json:
                options.json.write_text(json.dumps({"steps": options.steps, "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
