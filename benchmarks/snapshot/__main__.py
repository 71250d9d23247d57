"""Golden outputs: what every family and task gives before a change, and whether it still does, bit for bit.

    python -m benchmarks.snapshot record DIR     # builds tiny models, writes what they give
    python -m benchmarks.snapshot compare DIR    # loads the same folders, lists what differs

`compare` uses the public face alone: longspan.load, what a Reader can do, lengthen, draw and explain.
`record` needs transformers, too, and models.py, which knows how models are built.
"""

import argparse
import hashlib
import json
import logging
import os
import re
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "LONGSPAN_CACHE": os.devnull}

import numpy as np
import torch
from safetensors import safe_open

import longspan

RENAMED: dict[str, str] = {}
"""Names before and after a change, in calls and in reports; in files nothing may be renamed."""
DROPPED: frozenset[str] = frozenset()
"""Fields of files that are no longer written, and need not be."""
WORDS = re.compile(rf"\b({'|'.join(RENAMED) or '(?!)'})\b")
SHOWN = 8
"""Differences of a case that are printed."""

SHORT = "Anna lives in Rome."
LONG = """The river Thames flows through London, the capital of England. Boats go north; some go home.

Anna works for a small company near the old bridge and walks there alone. Who knows why? She lives at 7 Quay.

Long documents hold many words; each of them wants to be read as a whole. "So be it", we say: Read it!"""
TEXTS = [SHORT, "Ünïcode 文字 🙂 text", LONG]
WINDOWS, CUT = {"overflow": "window", "limit": 48}, {"overflow": "truncate", "limit": 40}
ASKED: dict[str, tuple[Any, ...]] = {
    "encode": (TEXTS,),
    "fill": (["Anna MASK in Rome.", f"MASK {LONG} MASK"],),
    "classify": ([*TEXTS, {"text": SHORT, "text_pair": LONG}],),
    "tag": (TEXTS,),
    "answer": (["Who lives where?", "Who?"], [LONG, SHORT]),
    "choose": ([SHORT, LONG], [["yes", "no"], ["a bridge", "a boat", "many words"]]),
    "summarize": (TEXTS,),
}
STRATEGIES = ("simple", "first", "average", "max")
EVERY: list[dict[str, Any]] = [{}, WINDOWS, CUT]
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "encode": [
        *EVERY,
        {"pooling": "first"},
        {"pooling": "max", **WINDOWS},
        {"normalize_embeddings": True, "prompt": "ask: ", "deterministic": True},
    ],
    "fill": [{}, WINDOWS, {"top_k": 2}],
    "classify": [*EVERY, {"top_k": None}],
    "tag": [*EVERY, *({"aggregation_strategy": how, "ignore_labels": ()} for how in STRATEGIES)],
    "answer": [*EVERY, {"top_k": 3, "handle_impossible_answer": True, **WINDOWS}],
    "choose": EVERY,
    "summarize": [
        {"max_length": 14},
        {"num_beams": 1, "max_new_tokens": 16},
        {"num_beams": 4, "max_new_tokens": 14, "length_penalty": 2.0, "early_stopping": True},
        {"num_beams": 4, "max_new_tokens": 12, "early_stopping": "never", "num_return_sequences": 3},
        {"num_beams": 3, "max_new_tokens": 16, "min_new_tokens": 9, "no_repeat_ngram_size": 2},
        {"num_beams": 1, "max_new_tokens": 12, "bad_words_ids": [[i] for i in range(3, 210, 2)]},
        {"num_beams": 2, "max_new_tokens": 8, "forced_bos_token_id": 9, "forced_eos_token_id": 2},
        {"do_sample": True, "max_new_tokens": 12, "num_return_sequences": 2, "seed": 3},
        {"do_sample": True, "max_new_tokens": 12, "top_k": 20, "top_p": 0.9, "temperature": 1.3, "seed": 4},
        {"num_beams": 2, "max_new_tokens": 8, "query": "Who?", **CUT},
    ],
}


def said(reader: Any, task: str, mask: str) -> dict[str, Any]:
    """What a reader says to a few inputs of its task."""
    verb = getattr(reader, RENAMED.get(task, task))
    given = json.loads(json.dumps(ASKED[task]).replace("MASK", mask))
    found = {json.dumps(options): verb(*given, **options) for options in OPTIONS[task]}
    if task == "encode":
        found |= {"query": reader.encode_query(TEXTS), "document": reader.encode_document(LONG)}
        found["details"] = reader.encode_with_details(TEXTS, tokens=True, **WINDOWS)
    return found


def gradients(model: torch.nn.Module, task: str) -> dict[str, Any]:
    """In training, of a random sum of outputs; what parameters are called does not count."""
    ids = torch.randint(5, 200, (92,), generator=torch.Generator().manual_seed(1))
    inputs: list[Any] = [ids, longspan.Layout.packed([61, 1, 30], marked=[[0, 5, 40], [0], []])]
    if task == "summarize":
        inputs += [ids[:16], longspan.Layout.packed([9, 2, 5])]
    torch.manual_seed(2)
    output = model.train()(*inputs)
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(3))
    (output * weights.to(output.dtype)).sum().backward()
    model.eval()
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    size = sum(float(grad.double().abs().sum()) for grad in grads)
    return {"output": digest(output), "size": size, "parameters": sorted(map(digest, grads))}


def digest(tensor: torch.Tensor) -> str:
    rows = tensor.detach().contiguous().view(torch.uint8).numpy()
    return f"{str(tensor.dtype)[6:]} {list(tensor.shape)} {hashlib.sha256(rows.tobytes()).hexdigest()[:16]}"


def files(folder: Path) -> dict[str, Any]:
    """What stands in a folder, but for its card: JSON as it is, tensors one by one, sums of the rest."""
    found: dict[str, Any] = {}
    for path in sorted(one for one in folder.rglob("*") if one.is_file() and one.suffix != ".md"):
        name = str(path.relative_to(folder))
        if path.suffix == ".json" and path.name != "tokenizer.json":
            found[name] = json.loads(path.read_text(encoding="utf-8"))
            continue
        found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as file:
                found[f"{name}: tensors"] = {key: digest(file.get_tensor(key)) for key in sorted(file.keys())}
    return found


def read(folder: Path, task: str, mask: str, options: dict[str, Any]) -> dict[str, Any]:
    """A folder is loaded, asked, saved again and trained for a step."""
    torch.manual_seed(4)  # for what a file does not hold
    reader = longspan.load(folder, "summarization" if task == "summarize" else task, **options)
    for parameter in reader.model.parameters():  # the last digits may depend on where in memory weights lie
        parameter.data = parameter.data.clone()
    found = {"says": said(reader, task, mask)}
    if "precision" not in options:
        found["files"] = {"saved": saved(reader)}
        reader.config.clear()  # what a folder says is kept, else it is written anew
        found["files"]["saved anew"] = saved(reader)
        found["gradients"] = gradients(reader.model, task)
    return found


def saved(reader: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        reader.save(place)
        return files(Path(place))


def lengthen(folder: Path, task: str, mask: str, options: dict[str, Any]) -> dict[str, Any]:
    """A short model is made long and written, then read like any other."""
    chosen: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
    }
    if "sif_weights" in chosen:
        chosen["sif_weights"] = torch.rand(chosen["sif_weights"], generator=torch.Generator().manual_seed(1))
    chosen = {RENAMED.get(name, name): value for name, value in chosen.items()}
    torch.manual_seed(5)
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "long"
        report = longspan.lengthen(folder, 640, out=out, **chosen).as_json()
        for name in ("source", "folder"):
            del report[name]
        return {"report": report, "files": files(out), "read": read(out, task, mask, {})}


def look(folder: Path | str, length: int) -> dict[str, Any]:
    """A model's picture and costs."""
    costs = longspan.explain(folder, length, gflops=100).as_json()
    return {"picture": longspan.draw(folder, length).text().splitlines(), "costs": costs}


def result(home: Path, kind: str, folder: str, **arguments: Any) -> Any:
    """What a case gives, as JSON has it."""
    place = home / "models" / folder
    try:
        found = globals()[kind](place if place.is_dir() else folder, **arguments)
    except longspan.LongspanError as error:
        return {"refused": type(error).__name__, "because": str(error)}
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        return {"failed": f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"}
    return json.loads(json.dumps(found, default=lambda value: np.asarray(value).tolist()))


def respelled(value: Any) -> Any:
    """Everything but files in the new names."""
    if isinstance(value, dict):
        return {respelled(key): part if key == "files" else respelled(part) for key, part in value.items()}
    if isinstance(value, list):
        return [respelled(part) for part in value]
    return WORDS.sub(lambda word: RENAMED[word[0]], value) if isinstance(value, str) else value


def differences(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[bool, str]]:
    """Whether a difference is a failure, and what it is; files may gain fields, all else is fixed."""
    here = " > ".join(path)
    if not isinstance(old, dict | list) or type(old) is not type(new):
        if json.dumps(old) != json.dumps(new):  # tells 0.0 from -0.0 and 1.0 from 1
            yield True, f"{here}: {brief(old)} -> {brief(new)}"
        return
    before, after = (part if isinstance(part, dict) else dict(enumerate(part)) for part in (old, new))
    for key in dict.fromkeys([*before, *after]):
        if key not in after:
            known = "files" in path and key in DROPPED
            yield not known, f"{here} > {key}: {brief(before[key])} is gone"
        elif key not in before:
            yield "files" not in path, f"{here} > {key}: {brief(after[key])} is new"
        else:
            yield from differences(before[key], after[key], (*path, str(key)))


def brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 160 else f"{text[:160]}..."


def machine() -> dict[str, Any]:
    """What else the last digits depend on."""
    kernel = any(Path(longspan.__file__).parent.rglob("_native*.so"))
    return {"torch": torch.__version__, "cpu": torch.backends.cpu.get_cpu_capability(), "kernel": kernel}


def compare(home: Path, only: str) -> int:
    """How many cases differ."""
    golden = json.loads((home / "golden.json").read_text())
    if golden["machine"] != machine():
        print(f"Recorded with {golden['machine']}, but this is {machine()}: last digits may differ.")
    cases, failed, allowed = golden["cases"], list[str](), Counter[str]()
    chosen = [name for name in cases if re.search(only, name)]
    for name in chosen:
        old, new = (respelled(one) for one in (cases[name]["found"], result(home, **cases[name]["case"])))
        found = list(differences(old, new))
        if new.keys() & {"refused", "failed"}:  # the words of a refusal may change
            found = [] if old.get("refused") == new.get("refused", "") else [(True, str(new))]
        allowed.update(line for fails, line in found if not fails)
        lines = [line for fails, line in found if fails]
        failed += [name] if lines else []
        lines[SHOWN:] = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        print(*(f"{name}: {line}\n" for line in lines), sep="", end="", flush=True)
    print(*(f"allowed in {cases} cases: {line}\n" for line, cases in allowed.items()), sep="", end="")
    print(f"{len(failed)} of {len(chosen)} cases differ", *failed, sep="\n  ")
    return len(failed)


def record(home: Path) -> None:
    """All folders, and what they give."""
    from benchmarks.snapshot.models import cases as new_cases

    cases = {}
    for name, case in new_cases(home / "models"):
        cases[name] = {"case": case, "found": (found := result(home, **case))}
        if found.keys() & {"refused", "failed"}:
            print(f"{name}: {found}", flush=True)
    (home / "golden.json").write_text(json.dumps({"machine": machine(), "cases": cases}))
    print(f"{len(cases)} cases")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--only", default="", metavar="REGEX", help="compare these cases only")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("longspan").setLevel(logging.ERROR)
    home = arguments.folder.resolve()
    if arguments.command == "record":
        if home.exists():
            parser.error(f"{home} is there already")
        record(home)
        return 0
    return 1 if compare(home, arguments.only) else 0


if __name__ == "__main__":
    sys.exit(main())
