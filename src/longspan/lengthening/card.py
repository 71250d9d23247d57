"""What stands beside the weights of a lengthened model: tokenizer, prompts, and a card."""

import re
from pathlib import Path

import torch

from longspan._version import __version__
from longspan.checkpoints.save import GENERATION, PROMPTS
from longspan.families.task_model import TaskModel
from longspan.formats.atomic import as_json
from longspan.formats.files import inside, read_json
from longspan.lengthening.report import LengthenReport
from longspan.text.families import FAMILIES
from longspan.text.tokenizer import Tokenizer

VOCABULARIES = ("tokenizer.json", *(family.files[0] for family in FAMILIES))
_LICENSE = re.compile(r"---\n(?:.*\n){0,200}?license:[ \t]*([\w.-]{1,60})[ \t]*\n")


def written_files(folder: Path, source: Path, model: TaskModel, report: LengthenReport) -> None:
    """The tokenizer with its new limit, what sentence-transformers and generation read, and README.md."""
    config = model.config
    homes = [home for home in (source, source.parent) if (home / "modules.json").is_file() or home == source]
    if any((source / name).is_file() for name in VOCABULARIES):
        tokenizer = Tokenizer.from_folder(source, vocab_size=config.vocab_size)
        tokenizer.limit = min(config.positions, model.longest)
        tokenizer.write(folder, token_types=config.token_types > 1)
    for name, home in ((name, home) for home in homes for name in (PROMPTS, GENERATION)):
        if (home / name).is_file():
            (folder / name).write_text(as_json(read_json(inside(home, name))))
    (folder / "README.md").write_text(card(report, _license(homes)), encoding="utf-8")


def card(report: LengthenReport, license_name: str | None = None) -> str:
    """The model card: what was done, with which options and versions."""
    local = Path(report.source).expanduser()
    name = local.resolve().name if local.is_dir() else report.source
    head = [f"license: {license_name}"] if license_name else []
    head += [] if local.is_dir() else [f"base_model: {name}"]
    seen = ("seen", "all tokens") if report.block is None else ("block", str(report.block))
    seen = seen if report.radius is None else ("radius", str(list(report.radius)))
    near = f"up to {report.equal_up_to} tokens, within {report.max_difference:.1e}"
    far = f"no: the scaling changes all documents, those of {near.replace('within', 'by at most')}"
    drift = "cosine {0.cosine:.4f}, hidden states differ by {0.mean_difference:.1e} on average"
    rows = [
        ("source", f"`{name}`, {report.short} tokens, task {report.task}"),
        ("pattern", report.pattern),
        seen,
        *report.notes.items(),
        ("positions", report.positions + (f", period {report.period}" if report.period else "")),
        ("copied", ", ".join(report.copied)),
        ("equal to the source", near if report.equal else far),
        *((f"drift at {one.tokens} tokens", drift.format(one)) for one in report.drift),
        ("loads in transformers", "yes" if report.why_not is None else f"no: {report.why_not}"),
        ("made with", f"longspan {__version__}, torch {torch.__version__}"),
    ]
    lines = ["---", *head, "library_name: longspan", "tags: [longspan, long-context]", "---", ""]
    lines += [f"# {name}, {report.to} tokens", ""]
    lines += [f"`{name}` lengthened from {report.short} to {report.to} tokens without any training.", ""]
    lines += ["| | |", "|---|---|", *(f"| {label} | {text} |" for label, text in rows), ""]
    lines += ["Made by, with SOURCE the source:", "", "```sh", report.command, "```", "", "Read by:", ""]
    lines += ["```python", "import longspan", "", 'reader = longspan.load("this folder")', "```", ""]
    return "\n".join(lines)


def _license(homes: list[Path]) -> str | None:
    """What the source's own card says, if it says so in its first lines."""
    for path in (home / "README.md" for home in homes):
        if path.is_file():
            with path.open(encoding="utf-8", errors="replace") as file:
                match = _LICENSE.match(file.read(1 << 16))
            if match:
                return match[1]
    return None
