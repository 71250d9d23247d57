"""The page on extending Longspan, done: what it adds to a copy of the sources works there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/extend.md").read_text()
FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINES = re.compile(r"^In `([\w./]+)`, below `([^`]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
PLAIN = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
"""
"""An editable install would be imported in place of the copy."""
ARCHITECTURE = ("tests/architecture/test_imports.py", "tests/architecture/test_owners.py")
TINY = """
import torch, longspan
from longspan.bench.loading import tokenizer
from longspan.reader import Reader
from longspan.tasks.registry import build

torch.manual_seed(0)
SIZES = dict(vocab_size=300, width=16, layers=2, heads=2, feed_forward=32, positions=128, pad_id=1)
TEXTS = ["All's well that ends well. " * n for n in (1, 2)]
"""


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def extended(folder: Path, title: str) -> Path:
    """A copy of the sources with what a section of the page adds to them."""
    for name in ("src", "csrc", "tests", "CMakeLists.txt", "pyproject.toml"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    (folder / "src/sitecustomize.py").write_text(PLAIN)
    files, changes = FILE.findall(section(title)), LINES.findall(section(title))
    assert files
    assert changes
    for name, text in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for name, anchor, text in changes:
        before = (folder / name).read_text()
        assert before.count(f"{anchor}\n") == 1, f"{anchor!r} does not stand once in {name}"
        (folder / name).write_text(before.replace(f"{anchor}\n", f"{anchor}\n{text}"))
    return folder


def python(folder: Path, *arguments: str) -> str:
    """What Python prints with the sources of a folder."""
    paths = [str(folder / "src"), str(folder / "tests")]
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def passes(folder: Path, *arguments: str) -> int:
    """How many of our own tests pass with the sources of a folder."""
    report = python(folder, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
    counted = re.search(r"(\d+) passed", report)
    return int(counted[1]) if counted else 0


def test_a_pattern_is_drawn_planned_and_swept_by_the_tests(tmp_path: Path) -> None:
    folder = extended(tmp_path, "A pattern")
    drawn = python(folder, "-m", "longspan", "draw", "Chunks(2)", "--length", "5").splitlines()
    assert [line.split() for line in drawn[1:6]] == [
        ["0", "■", "■", "·", "·", "·"],
        ["1", "■", "■", "·", "·", "·"],
        ["2", "■", "■", "■", "■", "·"],
        ["3", "■", "■", "■", "■", "·"],
        ["4", "·", "·", "■", "■", "■"],
    ]
    assert passes(folder, "tests/unit/patterns", "-k", "Chunks") > 10
    assert passes(folder, "tests/conformance/test_backends.py", "-k", "Chunks and float32") > 3


def test_a_family_is_built_saved_loaded_and_drawn(tmp_path: Path) -> None:
    folder = extended(tmp_path, "A family")
    proof = TINY + dedent(
        """
        from longspan.families.strided_bert.model import StridedBertConfig

        model = build(StridedBertConfig(**SIZES, radius=3, stride=4), "encode").eval()
        before = Reader(model, tokenizer(300))
        before.save(sys.argv[1])
        after = longspan.load(sys.argv[1])
        assert after.model.config == model.config and after.model.config.stride == 4
        assert torch.equal(*(torch.from_numpy(reader.encode(TEXTS)) for reader in (before, after)))
        assert "Strided BERT" in str(longspan.draw(sys.argv[1], 32)), str(longspan.draw(sys.argv[1], 32))
        """
    )
    python(folder, "-c", "import sys\n" + proof, str(tmp_path / "model"))
    drawn = python(folder, "-m", "longspan", "draw", "strided-bert-base", "--length", "256")
    assert "Strided BERT, 12 layers" in drawn
    assert "Window(64)" in drawn
    assert passes(folder, *ARCHITECTURE) > 100


def test_a_task_is_built_saved_loaded_and_run(tmp_path: Path) -> None:
    folder = extended(tmp_path, "A task")
    proof = TINY + dedent(
        """
        from longspan.families.longformer.model import LongformerConfig
        from longspan.tasks.registry import TASKS

        model = build(LongformerConfig(**SIZES, radius=3, init_std=0.5), "grade").eval()
        before = Reader(model, tokenizer(300))
        ranked = before("who pays?", TEXTS)
        assert sorted(one["index"] for one in ranked) == [0, 1] and ranked[0]["score"] >= ranked[1]["score"]
        before.save(sys.argv[1])
        for task in (None, "grade", "passage-grading"):
            for one, same in zip(ranked, longspan.load(sys.argv[1], task)("who pays?", TEXTS), strict=True):
                assert one["index"] == same["index"] and abs(one["score"] - same["score"]) < 1e-5
        loss = TASKS["grade"].loss(torch.zeros(2, 1), torch.tensor([0.0, 1.0]))
        assert abs(float(loss) - 0.6931) < 1e-3

        # A backbone that transformers has, with a head that it has not.
        Reader(build(LongformerConfig(**SIZES, radius=3), "encode").eval(), tokenizer(300)).save(sys.argv[2])
        import logging
        logging.disable()
        assert len(longspan.load(sys.argv[2], "grade")("who pays?", TEXTS)) == 2
        """
    )
    python(folder, "-c", "import sys\n" + proof, str(tmp_path / "model"), str(tmp_path / "encoder"))
    assert passes(folder, *ARCHITECTURE) > 100


def test_a_backend_computes_attention_and_conforms(tmp_path: Path) -> None:
    folder = extended(tmp_path, "A backend")
    proof = """
        import torch, longspan
        plan = longspan.plan(longspan.patterns.Window(3), longspan.Layout.packed([9, 5]), heads=2)
        q, k, v = torch.randn(3, 14, 2, 8)
        dense, derived = (longspan.attention(q, k, v, plan, backend=name) for name in ("dense", "derived"))
        torch.testing.assert_close(derived, dense)
        assert "derived" in plan.explain()
    """
    python(folder, "-c", dedent(proof))
    swept = "derived and (Fixed or kind_of_layout or each_term or dropout)"
    assert passes(folder, "tests/conformance", "-k", swept) > 50


@pytest.mark.slow
def test_an_instruction_set_is_compiled_and_right(tmp_path: Path) -> None:
    tools = {name: shutil.which(name, path=str(Path(sys.executable).parent)) for name in ("cmake", "ninja")}
    cmake, ninja = tools["cmake"], tools["ninja"]
    if os.uname().machine != "x86_64" or cmake is None or ninja is None:
        pytest.skip("needs an x86 CPU, cmake and ninja")
    folder = extended(tmp_path, "An instruction set")
    build = str(tmp_path / "build")
    options = ("-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", "-DLONGSPAN_SANITIZE=ON")
    for command in (
        [cmake, "-S", str(folder), "-B", build, *options],
        [cmake, "--build", build, "--target", "longspan_tests"],
        [f"{build}/longspan_tests", "60", "1", "sse4"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "target sse4" in done.stdout
