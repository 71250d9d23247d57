"""Questions of three papers in small, asked of one RoBERTa that is trained here from nothing on real text.

longformer      table 5 of Beltagy et al. 2020: does a short model survive being made long, and what helps?
bigbird         table 1 of Zaheer et al. 2020: random, window and global blocks. All variants see 7 blocks.
poolingformer   Zhang et al. 2021: one level or two, how to pool, what to share, in how many layers.

Every variant begins with the same base model, and is evaluated on the same held-out documents with the same
masks. Seeds vary masks and order of the training, random positions and random blocks. Training keeps the best
of ten evaluations, on a small part of these documents. Give long documents. Run it twice with the same
options, and it goes on where it was stopped:

    python benchmarks/reproduce_mlm.py --data novels/ --out runs --seeds 2 --minutes-base 60 --steps 300 \\
        --json table.json
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from longspan.corpus.store import Corpus
from longspan.engine.labels import ClippedDistance
from longspan.families.attention_spec import AttentionSpec
from longspan.families.bigbird.model import BigBird, BigBirdConfig
from longspan.families.poolingformer.model import PoolingformerConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.lengthening.lengthen import lengthened, position_tables
from longspan.patterns import BlockWindow, GlobalBlocks, Pattern, RandomBlocks
from longspan.recipes.data import corpus_of
from longspan.recipes.pretrain import pretrain
from longspan.recipes.start import Start
from longspan.tasks.registry import build

if TYPE_CHECKING:
    from benchmarks import experiments
else:  # run as a file, whose folder is the path
    import experiments

SHORT, LONG, RADIUS, BLOCK, VOCABULARY = 256, 2048, 128, 32, 8000
FIGURES = (experiments.TOKEN, experiments.CHARACTER)


def unchanged(base: TaskModel, seed: int) -> TaskModel:
    """The base model itself."""
    return base


def longformer(base: TaskModel, seed: int, radius: int = RADIUS, positions: str = "copy") -> TaskModel:
    """The base model with windows; random positions are those of the seed."""
    model = lengthened(base, LONG, pattern="longformer", positions=positions, radius=radius)
    if positions == "random":  # the library's are the same each time
        name, offset = next(iter(position_tables(model).items()))
        new = model.get_parameter(name).detach()[offset + SHORT :]
        new.normal_(std=model.config.init_std, generator=torch.Generator().manual_seed(seed))
    return model


class Blocks(BigBird):
    """A BigBird with patterns that its config has no words for: random blocks alone, or none that are global.

    It is saved as the BigBird it was made from; the patterns are this script's.
    """

    patterns: Sequence[Pattern] = ()

    def layer_inputs(self, layout: Layout, labels: ClippedDistance | None) -> Iterable[tuple[Any, ...]]:
        specs = (AttentionSpec.within("blocks", pattern, layout) for pattern in self.patterns)
        return [(spec.plan(self.config.heads, labels),) for spec in specs]


def bigbird(base: TaskModel, seed: int, radius: int, drawn: int, ends: int = 0) -> TaskModel:
    """The base model, in which a block sees `radius` blocks on each side, `drawn` others and both `ends`."""
    model = lengthened(base, LONG, pattern="bigbird", block=BLOCK)
    old, config = model.backbone, model.config
    assert isinstance(old, BigBird)
    assert isinstance(config, BigBirdConfig)
    with torch.device("meta"):
        new = Blocks(config)
    new.embeddings, new.layers = old.embeddings, old.layers
    near: Pattern = BlockWindow(BLOCK, radius)
    near = near | GlobalBlocks(BLOCK, ends, ends) if ends else near
    seeds = range(seed * config.layers, (seed + 1) * config.layers)
    far = [RandomBlocks(BLOCK, drawn, "uniform", seed=n, table=LONG, heads=config.heads) for n in seeds]
    new.patterns = [near | one if drawn else near for one in far]
    model.backbone = new
    return model.eval()


def poolingformer(base: TaskModel, seed: int, shared: bool = False, **options: Any) -> TaskModel:
    """The base model with a second level, which starts at zero unless it has the weights of the first."""
    chosen: dict[str, Any] = {"radius": RADIUS, "wide_radius": 512, "two_level": (2, 3)} | options
    model = lengthened(base, LONG, pattern="poolingformer", **chosen)
    if not shared:
        return model
    config = model.config
    assert isinstance(config, PoolingformerConfig)
    # lengthening refuses it, since it differs from the base model before it is trained
    other = build(replace(config, share_weights=True), "fill")
    missing, _ = other.load_state_dict(model.state_dict(), strict=False)
    assert not missing, missing
    return other


@dataclass(frozen=True)
class Variant:
    """A row of a table."""

    name: str
    folder: str
    "Where its runs are kept; two rows may be the same runs."
    make: Callable[[TaskModel, int], TaskModel]
    trained: bool = True
    seeded: bool = True
    "Seeds make a difference."
    frozen: bool = False
    length: int = LONG


GROUPS: dict[str, list[Variant]] = {
    "longformer": [
        Variant("base, 256", "base-0", unchanged, trained=False, seeded=False, length=SHORT),
        Variant("base, 256, K updates", "base-k", unchanged, length=SHORT),
        Variant("random positions", "random-0", partial(longformer, positions="random"), trained=False),
        Variant("copied positions", "copied-0", longformer, trained=False, seeded=False),
        Variant("copied positions, K updates", "copied-k", longformer),
        Variant("copied positions, K updates of new positions", "frozen-k", longformer, frozen=True),
    ],
    "bigbird": [
        Variant("R: own block, 6 random", "blocks-r", partial(bigbird, radius=0, drawn=6)),
        Variant("W: 7 in the window", "blocks-w", partial(bigbird, radius=3, drawn=0)),
        Variant("R + W: 4 random, 3", "blocks-rw", partial(bigbird, radius=1, drawn=4)),
        Variant("R + W + G: 2 random, 3, 2 ends", "blocks-all", partial(bigbird, radius=1, drawn=2, ends=1)),
    ],
    "poolingformer": [
        Variant("one level, 128", "copied-k", longformer),
        Variant("one level, 512", "window-512", partial(longformer, radius=512)),
        Variant("two levels, 128 + 512: LDConv, 2 layers", "pooled", poolingformer),
        Variant("the same with mean", "pooled-mean", partial(poolingformer, pooling="mean")),
        Variant("with max", "pooled-max", partial(poolingformer, pooling="max")),
        Variant("with mix", "pooled-mix", partial(poolingformer, mix=True)),
        Variant("with shared weights", "pooled-shared", partial(poolingformer, shared=True)),
        Variant("with mix and shared weights", "pooled-lite", partial(poolingformer, shared=True, mix=True)),
        Variant("in 1 layer", "pooled-1", partial(poolingformer, two_level=(3,))),
        Variant("in 4 layers", "pooled-4", partial(poolingformer, two_level=(0, 1, 2, 3))),
    ],
}


def base_model(corpus: Corpus, options: argparse.Namespace) -> Path:
    """The folder of the base model, trained if it is not there."""
    folder: Path = options.out / "base"
    settings = {"minutes": options.minutes_base, "batch_tokens": options.batch_tokens}

    def trained() -> dict[str, float]:
        start = Start.from_preset("roberta-base", corpus.tokenizer, length=SHORT, changes=experiments.SIZES)
        plan = experiments.plan(options, minutes=options.minutes_base, length=SHORT, lr=1e-3)
        report = pretrain(start, corpus, folder, plan)
        print(report, end="\n\n", flush=True)
        return {"seconds": report.training.seconds, "steps": report.training.steps}

    experiments.kept(folder, settings, trained)
    return folder


def measured(
    variant: Variant, seed: int, corpus: Corpus, base: Path, options: argparse.Namespace
) -> experiments.Run:
    """Bits of one run on the held-out documents, and what it took."""
    folder = options.out / (f"{variant.folder}-{seed}" if variant.seeded else variant.folder)
    settings: dict[str, object] = {"eval_tokens": options.eval_tokens}
    if variant.trained:
        settings |= {name: getattr(options, name) for name in ("steps", "lr", "batch_tokens")}

    def run() -> dict[str, float]:
        start = Start.from_folder(base)
        start = replace(start, model=variant.make(start.model, seed), source=variant.folder)
        found: dict[str, float] = {}
        if variant.trained:
            own: dict[str, Any] = {"length": variant.length, "frozen": variant.frozen, "seed": seed}
            plan = experiments.plan(options, steps=options.steps, lr=options.lr, **own)
            report = pretrain(start, corpus, folder, plan)
            found = {"seconds": report.training.seconds, "best_step": float(report.training.best_step or 0)}
        return found | experiments.held_out_bits(start, corpus, variant.length, options.eval_tokens)

    return {"variant": variant.name, "seed": seed} | experiments.kept(folder, settings, run)


def main() -> None:
    """Run all variants, seed by seed, and print the table of their group after each."""
    parser = experiments.parser(__doc__)
    add = parser.add_argument
    add("--data", type=Path, nargs="+", required=True, help="texts, as `longspan corpus` reads them")
    add("--minutes-base", type=float, default=20, help="training of the base model (default: 20)")
    add("--steps", type=int, default=300, help="updates of each variant (default: 300)")
    add("--lr", type=float, default=3e-4, help="of the variants; that of the base is 1e-3 (default: 3e-4)")
    add("--only", choices=GROUPS, help="one group")
    options = parser.parse_args()
    corpus = corpus_of(options.data, options.out / "corpus", "bpe", vocab_size=VOCABULARY)
    base = base_model(corpus, options)
    chosen = {name: own for name, own in GROUPS.items() if options.only in (None, name)}
    first = {"variant": "frequencies of tokens", "seed": 0, **experiments.unigram_bits(corpus)}
    runs = [{"group": group, **first} for group in chosen]
    for seed in range(options.seeds):
        for group, variant in ((group, variant) for group, own in chosen.items() for variant in own):
            if seed and not variant.seeded:
                continue
            runs.append({"group": group, **measured(variant, seed, corpus, base, options)})
            own = [run for run in runs if run["group"] == group]
            print(group, experiments.table(own, FIGURES), sep="\n", end="\n\n", flush=True)
            experiments.write(options.json, vars(options), runs)


if __name__ == "__main__":
    main()
