"""Can a small LED learn to summarise from nothing? Trains one, and sets it against what the lead tells.

    python -m benchmarks.summaries --data scisummnet.tar.xz

The archive holds `Task2/From-ScisummNet-2019` of WING-NUS/scisumm-corpus (CC BY 4.0): 978 papers with
summaries that people wrote. Everything is learnt from the training papers; validation papers choose the
baselines' weights; test papers are looked at once, at the end. With `--effort 0.01` it runs through in two
minutes and learns nothing.
"""

import argparse
import copy
import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from benchmarks.summaries.lead import Lead
from benchmarks.summaries.learner import PRETEXT, Learner, drills, led, losses, packed
from benchmarks.summaries.papers import Pair, Paper, pair, papers, tokenizer
from tokenizers import Tokenizer

from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.generation.config import GenerationConfig
from longspan.generation.generate import generate
from longspan.metrics.rouge import rouge

WHOLE, WRITTEN = 4096, 512
"""Tokens of a paper that copying is learnt from, and of a summary: few have more."""
WRITING = GenerationConfig(num_beams=4, max_new_tokens=300, min_new_tokens=60, no_repeat_ngram_size=4)
Parts = dict[str, list[Pair]]


def cut(pairs: Sequence[Pair], longest: int) -> list[Pair]:
    """The pairs with no more than the first `longest` tokens of each document."""
    return [Pair(one.document[:longest], one.summary) for one in pairs]


def pretrained(model: Seq2SeqLM, train: Sequence[Pair], effort: float, draw: random.Random) -> Learner:
    """The model after it has learnt to copy from the training papers; no summary is shown."""
    learner, documents = Learner(model), [one.document for one in train]
    for stage in PRETEXT:
        drawn = partial(drills, documents, stage, draw)
        learner.learn(f"copy {stage.crop}", round(effort * stage.steps), drawn)
    return learner


def summarised(
    learner: Learner, name: str, parts: Parts, longest: int, asked: argparse.Namespace
) -> Seq2SeqLM:
    """The learner's model after it has learnt from summaries of papers cut to `longest` tokens."""
    train, validation = (cut(parts[part], longest) for part in ("train", "validation"))
    draw = random.Random(1)

    def tell() -> str:
        return f"validation {per_token(losses(learner.model, validation), validation):.3f}"

    print(f"{name}: before a step, {tell()}")
    for _ in range(asked.rounds):
        steps = round(asked.effort * asked.steps)
        learner.learn(name, steps, lambda: draw.sample(train, asked.batch), cooling=True, tell=tell)
    return learner.model


def per_token(found: Sequence[float], pairs: Sequence[Pair]) -> float:
    """Losses of whole summaries as one loss per token."""
    return sum(found) / sum(len(one.summary) for one in pairs)


def report(rows: dict[str, list[float]], pairs: Sequence[Pair], words: Tokenizer) -> None:
    """A table: nats for each token, bits for each word, and in how many papers the lead does worse."""
    count = sum(len(words.decode(one.summary).split()) for one in pairs)
    print("| | nats per token | bits per word | papers better than by the lead |\n|---|---|---|---|")
    for name, found in rows.items():
        better = sum(ours < theirs for ours, theirs in zip(found, rows["lead"], strict=True))
        bits = sum(found) / np.log(2) / count
        print(f"| {name} | {per_token(found, pairs):.3f} | {bits:.2f} | {better} of {len(pairs)} |")


def measured(
    pairs: Sequence[Pair], parts: Parts, asked: argparse.Namespace, model: Seq2SeqLM, short: Seq2SeqLM
) -> dict[str, list[float]]:
    """The loss of each summary by all that is compared."""
    grams = partial(Lead, parts["train"], parts["validation"], vocabulary=asked.vocabulary)
    others = [*pairs[1:], pairs[0]]
    return {
        "no document": grams(lead=0, copied=1).losses(pairs),
        "lead": grams(lead=asked.lead, copied=2).losses(pairs),
        "lead, five words": grams(lead=asked.lead, copied=5).losses(pairs),
        "all, five words": grams(lead=asked.longest, copied=5).losses(pairs),
        "LED": losses(model, pairs),
        "LED, of another paper": losses(
            model, [Pair(b.document, a.summary) for a, b in zip(pairs, others, strict=True)]
        ),
        "LED, cut to the lead": losses(model, cut(pairs, asked.lead)),
        "LED trained on leads": losses(short, cut(pairs, asked.lead)),
    }


def write(model: Seq2SeqLM, pairs: Sequence[Pair], words: Tokenizer) -> list[str]:
    """A summary of each document by beam search."""
    model.eval()
    found = []
    for one in pairs:
        ids, layout, _, _ = packed([one])
        ((text,),) = generate(model, ids, layout, WRITING)
        found.append(words.decode(list(text.tokens)))
    return found


def scored(texts: Sequence[str], wanted: Sequence[Paper]) -> list[float]:
    """Mean ROUGE-1, -2 and -L, in percent."""
    return [100 * mean for mean in rouge(texts, [one.summary for one in wanted]).values()]


def leads(chosen: Sequence[Paper], k: int) -> list[str]:
    """The first k sentences of each paper, of which the first is its title."""
    return [" ".join(one.sentences[:k]) for one in chosen]


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=Path, help="the archive")
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--longest", type=int, default=1024, help="tokens of a paper that are read")
    parser.add_argument("--lead", type=int, default=512, help="tokens that are its lead")
    parser.add_argument("--rounds", type=int, default=2, help="on summaries; in each the rate falls anew")
    parser.add_argument("--steps", type=int, default=350, help="in a round")
    parser.add_argument("--batch", type=int, default=8, help="papers in a step on summaries")
    parser.add_argument("--texts", type=int, default=30, help="test papers that are summarised in the end")
    parser.add_argument("--effort", type=float, default=1.0, help="share of all steps that are taken")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Read, learn, measure, write."""
    asked = arguments()
    torch.manual_seed(asked.seed)
    read = papers(asked.data)
    words = tokenizer(
        (text for one in read["train"] for text in (*one.sentences, one.summary)), asked.vocabulary
    )
    parts = {name: [pair(one, words, WHOLE, WRITTEN) for one in part] for name, part in read.items()}
    print(", ".join(f"{len(part)} papers for {name}" for name, part in parts.items()))
    model = led(asked.vocabulary, asked.longest, WRITTEN, width=asked.width, heads=asked.heads)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    learner = pretrained(model, parts["train"], asked.effort, random.Random(asked.seed))
    twin = copy.deepcopy(learner)
    model = summarised(learner, "summaries", parts, asked.longest, asked)
    short = summarised(twin, "lead only", parts, asked.lead, asked)
    for part in ("validation", "test"):
        print(f"\n{part}")
        pairs = cut(parts[part], asked.longest)
        report(measured(pairs, parts, asked, model, short), pairs, words)
    best = max(range(1, 13), key=lambda k: scored(leads(read["validation"], k), read["validation"])[1])
    chosen = read["test"][: asked.texts]
    written = write(model, cut(parts["test"][: asked.texts], asked.longest), words)
    print(f"\n| {len(chosen)} test papers | ROUGE-1 | ROUGE-2 | ROUGE-L |\n|---|---|---|---|")
    for name, texts in (("LED", written), (f"first {best} sentences", leads(chosen, best))):
        print(f"| {name} | " + " | ".join(f"{mean:.1f}" for mean in scored(texts, chosen)) + " |")
    for one, text in list(zip(chosen, written, strict=True))[:3]:
        print(f"\n{one.name}\nLED: {text}\nhuman: {one.summary}")


if __name__ == "__main__":
    main()
