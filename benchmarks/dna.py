"""Does a longer context help to read DNA? Section 5 of Zaheer et al. 2020 in small, on a chromosome.

Two BigBirds of one size learn byte pairs of bases as masked language models, at 512 and at 4,096 tokens, from
as many tokens: the first run takes --minutes, and all others as many steps. Held-out stretches of 50,000
bases give bits per base. Then each, and a new model, learns to tell promoters from the same sequences with 12
of 20 pieces shuffled (Oubounyt et al. 2019). A promoter and its negative are always on one side: 80 % to
train on, 10 % to choose the best weights by, 10 % to test. Run it twice with the same options, and it goes on
where it was stopped:

    python benchmarks/dna.py --chromosome chr17.fa.gz --promoters promoters.txt --out runs --minutes 60 \\
        --json table.json

PROMOTERS has one sequence in each line, or is FASTA with one in each line, and may end in .gz or .xz.
"""

import argparse
import gzip
import lzma
import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import longspan
from longspan.checkpoints.save import write_model
from longspan.corpus.store import Corpus
from longspan.recipes.data import corpus_of
from longspan.recipes.pretrain import pretrain
from longspan.recipes.start import Start
from longspan.training.optimizer import AdamW

if TYPE_CHECKING:
    from benchmarks import experiments
else:  # run as a file, whose folder is the path
    import experiments

LENGTHS = (512, 4096)
BLOCKS = {"block": 32, "random_blocks": 2, "random": "uniform", "full_up_to": 256}
"""Both see 7 blocks of a long document, so that a token costs the same."""
PIECES, SHUFFLED = 20, 12
LABELS = ["shuffled", "promoter"]


def new_model(corpus: Corpus, length: int, seed: int) -> Start:
    """A BigBird that reads so many tokens, with random weights."""
    changes = experiments.SIZES | BLOCKS
    return Start.from_preset("bigbird-base", corpus.tokenizer, length=length, seed=seed, changes=changes)


def pretrained(
    corpus: Corpus, length: int, seed: int, steps: int | None, options: argparse.Namespace
) -> experiments.Run:
    """Bits of a model of one length; without `steps` it takes as many as --minutes allow."""
    folder = options.out / f"mlm-{length}-{seed}"
    amount = {"minutes": options.minutes} if steps is None else {"steps": steps}
    settings = {**amount, "batch_tokens": options.batch_tokens, "eval_tokens": options.eval_tokens}

    def run() -> dict[str, float]:
        start = new_model(corpus, length, seed)
        plan = experiments.plan(options, **amount, length=length, lr=1e-3, seed=seed)
        report = pretrain(start, corpus, folder, plan)
        bits = experiments.held_out_bits(start, corpus, length, options.eval_tokens)
        return {"seconds": report.training.seconds, "steps": report.training.steps, **bits}

    return {"variant": f"{length} tokens", "seed": seed} | experiments.kept(folder, settings, run)


def untrained(corpus: Corpus, seed: int, out: Path) -> Path:
    """The folder of a new model."""
    folder = out / f"new-{seed}"
    if not folder.is_dir():
        start = new_model(corpus, LENGTHS[0], seed)
        begun = folder.with_suffix(".tmp")
        begun.mkdir(parents=True, exist_ok=True)
        write_model(start.model, begun)
        start.tokenizer.write(begun, token_types=False)
        begun.rename(folder)  # all of it or nothing
    return folder


def sequences(path: Path) -> list[str]:
    """The sequences of a file, each once, in upper case."""
    unpack = {".gz": gzip.decompress, ".xz": lzma.decompress}.get(path.suffix, bytes)
    lines = unpack(path.read_bytes()).decode().upper().split()
    return list(dict.fromkeys(line for line in lines if not line.startswith(">")))


def shuffled(sequence: str, draw: random.Random) -> str:
    """A negative: 12 of the 20 pieces of a promoter change places, the rest stays."""
    cuts = [len(sequence) * n // PIECES for n in range(PIECES + 1)]
    pieces = [sequence[a:b] for a, b in pairwise(cuts)]
    chosen = draw.sample(range(PIECES), SHUFFLED)
    order = draw.sample(chosen, SHUFFLED)
    moved = dict(zip(chosen, order, strict=True))
    return "".join(pieces[moved.get(n, n)] for n in range(PIECES))


def split(promoters: list[str], seed: int) -> list[tuple[list[str], list[str]]]:
    """Texts and labels to train on, to choose by and to test with."""
    draw = random.Random(seed)
    pairs = [(shuffled(one, draw), one) for one in promoters]
    draw.shuffle(pairs)
    cuts = [0, len(pairs) * 8 // 10, len(pairs) * 9 // 10, len(pairs)]
    sides = [pairs[a:b] for a, b in pairwise(cuts)]
    return [([text for pair in side for text in pair], LABELS * len(side)) for side in sides]


def classified(
    name: str, model: Path, seed: int, promoters: list[str], options: argparse.Namespace
) -> experiments.Run:
    """Accuracy and F1 of a model that is fine-tuned on promoters."""
    folder = options.out / f"promoters-{name.replace(' ', '-')}-{seed}"
    settings = {"epochs": options.epochs, "lr": options.lr, "promoters": len(promoters)}

    def run() -> dict[str, float]:
        training, chosen_by, (texts, labels) = split(promoters, seed)
        reader = longspan.load(model, task="classify", labels=LABELS, dtype="float32")
        report = longspan.finetune(
            reader,
            training[0],
            labels=training[1],
            out=folder,
            validation=chosen_by,
            epochs=options.epochs,
            batch_size=32,
            optimizer=AdamW(lr=options.lr),
            seed=seed,
        )
        found = [one["label"] for one in reader.classify(texts, progress=False)]
        hits = sum(one == other == LABELS[1] for one, other in zip(found, labels, strict=True))
        right = sum(one == other for one, other in zip(found, labels, strict=True))
        said = found.count(LABELS[1]) + labels.count(LABELS[1])
        return {"seconds": report.seconds, "accuracy": right / len(labels), "f1": 2 * hits / said}

    return {"variant": f"from {name}", "seed": seed} | experiments.kept(folder, settings, run)


def main() -> None:
    """Pretrain and fine-tune, seed by seed, and print both tables after each run."""
    parser = experiments.parser(__doc__)
    add = parser.add_argument
    add("--chromosome", type=Path, nargs="+", required=True, help="FASTA")
    add("--promoters", type=Path, required=True, help="promoters, one in each line")
    add("--minutes", type=float, default=60, help="of the first pretraining run (default: 60)")
    add("--epochs", type=int, default=8, help="of fine-tuning (default: 8)")
    add("--lr", type=float, default=3e-4, help="of fine-tuning; that of pretraining is 1e-3 (default: 3e-4)")
    add("--most-promoters", type=int, help="use only the first ones")
    options = parser.parse_args()
    corpus = corpus_of(options.chromosome, options.out / "corpus", "dna", vocab_size=4096)
    promoters = sequences(options.promoters)[: options.most_promoters]
    first: experiments.Run = {
        "variant": "frequencies of tokens",
        "seed": 0,
        **experiments.unigram_bits(corpus),
    }
    runs, tests, steps = [first], list[experiments.Run](), None

    def tell() -> None:
        for own, figures in ((runs, (experiments.TOKEN, experiments.CHARACTER)), (tests, ("accuracy", "f1"))):
            print(experiments.table(own, figures), end="\n\n", flush=True)
        experiments.write(options.json, vars(options), [*runs, *tests])

    for seed in range(options.seeds):
        models = {"nothing": untrained(corpus, seed, options.out)}
        for length in LENGTHS:
            runs.append(pretrained(corpus, length, seed, steps, options))
            steps = int(runs[1]["steps"])
            models[f"{length} tokens"] = options.out / f"mlm-{length}-{seed}"
            tell()
        for name, model in models.items():
            tests.append(classified(name, model, seed, promoters, options))
            tell()


if __name__ == "__main__":
    main()
