"""One owner for each family and each task: its name stands at home; nobody asks a config for its class."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from architecture.tree import MODULES, PACKAGE, SOURCE, code_of, file_of, imports_of, prose_of, tree_of
from longspan.tasks.registry import TASKS

FAMILIES = sorted(path.parent.name for path in (SOURCE / PACKAGE / "families").glob("*/files.py"))
OPEN = {
    "families/registry.py": "lists the families",
    "bench/": "times named models against others",
    "recipes/": "trains named models",
    "hf/": "replaces classes of transformers, by their names",
    "text/": "reads the files of tokenizers, which are named after models",
}
"""Where any family may be named, and why."""
GUESTS = {
    "builtin.py": ("stitched",),  # what the built-in model is lengthened to
    "cli/eval.py": ("char_lm",),  # a subject of its own
    "cli/eval_char_lm.py": ("char_lm",),
    "cli/inspect.py": ("longformer",),  # an example of what may be typed
    "cli/lengthen.py": ("longformer", "roberta"),  # the default, and an example
    "cli/pretrain.py": ("bert", "longformer", "roberta"),  # examples of what may be typed
    "cli/sample.py": ("char_lm",),  # what writes, byte by byte
    "cli/summarize.py": ("bart", "bigbird_pegasus", "led"),  # models that write
    "cli/train.py": ("char_lm",),  # a recipe
    "corpus/tokenizers.py": ("bert", "roberta"),  # classes of the library tokenizers
    "engine/relations.py": ("etc",),  # the labels of its paper
    "evaluate/longembed.py": ("gte",),  # a model of another kind whose published score is printed
    "families/bert/files.py": ("roberta",),  # whose files are of the same type of ours
    "families/config.py": ("bert", "bigbird", "roberta"),  # the three kinds of heads, as files name them
    "families/etc/lengthen.py": ("bert", "roberta"),  # what it is made from
    "families/stitched/lengthen.py": ("roberta",),  # what it is made from
    "hub.py": ("bert", "etc", "stitched"),  # names of files and folders
    "lengthening/lengthen.py": ("longformer",),  # the default
    "patterns/gallery.py": ("bigbird", "longformer"),  # names of pictures
    "patterns/random_tables.py": ("bigbird",),  # the functions whose draws are repeated
}
"""Files that name families besides their own."""
ALMOST_ALONE = ("mpnet", "poolingformer")
"""Families that a single file beside their folder and the registry may name, even in a docstring."""


def _word(name: str) -> str:
    """A short name as a word of its own, or where it begins a part of a CamelCase name."""
    spellings = f"{name}|{name.upper()}|{name.title()}"
    return rf"(?<![A-Za-z])(?:{spellings})(?![a-z])|(?<=[a-z]){name.title()}(?![a-z])"


SPELLINGS = {
    "bart": _word("bart"),
    # sentence_bert_config.json is no file of BERT's, and its heirs are families of their own
    "bert": rf"(?<!sentence_)(?<!Modern)(?<!Euro)(?<!Nomic)(?<!Jina)(?:{_word('bert')})",
    "bigbird": r"(?i:big_?bird(?![-_]?(?:pegasus|etc)))",
    "bigbird_pegasus": r"(?i:big_?bird[-_]?pegasus)",
    "etc": rf"(?!etc\.(?:\s|$|\)))(?:{_word('etc')})",  # "etc." at the end of a clause is no family
    "gte": _word("gte"),
    "led": _word("led"),
    "stitched": r"\b_?stitched\b|Stitched|STITCHED",
}
PATTERNS = {name: SPELLINGS.get(name, f"(?i:{name.replace('_', '[-_]?')})") for name in FAMILIES}
CITATION = re.compile(r"[A-Z][\w-]+, section \d")


def named_in(module: str) -> set[str]:
    """The families that a file names, without citations of their papers."""
    words = [*code_of(module), *(CITATION.sub("", text) for text in prose_of(module))]
    return {name for name, pattern in PATTERNS.items() if any(re.search(pattern, text) for text in words)}


@cache
def kin(family: str) -> frozenset[str]:
    """The family itself and those that it is built on: what its folder imports."""
    inside = [module for module in MODULES if module.startswith(f"longspan.families.{family}.")]
    used = {name.split(".")[2] for module in inside for name in imports_of(module) if ".families." in name}
    return frozenset({family}).union(*(kin(name) for name in used - {family} if name in FAMILIES))


def hosts(module: str) -> set[str]:
    """The families that a file may name."""
    file = file_of(module)
    if file.startswith(tuple(OPEN)):
        return set(FAMILIES)
    unit, _, rest = file.partition("/")
    folder = rest.split("/")[0]
    own = kin(folder) if unit == "families" and folder in FAMILIES else frozenset[str]()
    return {*own, *GUESTS.get(file, ())}


@pytest.mark.parametrize("module", MODULES)
def test_a_family_is_named_at_home_only(module: str) -> None:
    assert named_in(module) <= hosts(module)


@pytest.mark.parametrize("file", GUESTS)
def test_no_exception_outlives_its_reason(file: str) -> None:
    module = next(module for module in MODULES if file_of(module) == file)
    assert set(GUESTS[file]) <= named_in(module)


@pytest.mark.parametrize("family", ALMOST_ALONE)
def test_a_family_that_nothing_else_is_built_on_stands_almost_alone(family: str) -> None:
    naming = [file_of(module) for module, path in MODULES.items() if family in path.read_text().lower()]
    elsewhere = [
        file for file in naming if not file.startswith((f"families/{family}/", "families/registry.py"))
    ]
    assert len(elsewhere) <= 1, elsewhere


def test_names_are_noticed_in_all_their_spellings() -> None:
    for name, text in (
        ("longformer", "TO_LONGFORMER"),
        ("bigbird", "google/bigbird-roberta-base"),
        ("bigbird_pegasus", "BigBirdPegasusModel"),
        ("led", "LEDEncoderSelfAttention"),
        ("etc", "longspan.families.etc.model"),
        ("etc", "DenseEtc"),
        ("bert", "unlike_bert"),
    ):
        assert re.search(PATTERNS[name], text), text
    for name, text in (("led", "called, Sled"), ("etc", "and so on, etc."), ("bert", "sentence_bert_config")):
        assert not re.search(PATTERNS[name], text), text


TASK_GUESTS = {
    "answer": (
        "datasets/forms.py",  # a column
        "datasets/published/hotpot.py",
        "datasets/published/qmsum.py",
        "datasets/published/wikihop.py",
        "evaluate/longembed.py",  # a key in QMSum's files
    ),
    "classify": ("tasks/choose.py",),  # a head read in the same way
    "encode": (
        "cli/__init__.py",
        "cli/encode.py",
        "cli/eval.py",
        "search/late_interaction.py",
        "search/own_model.py",
        "search/passages.py",
        "search/token_codes.py",
        "search/ways.py",
        "tasks/token_heads.py",
        "st.py",  # which reads texts as it does
        "tasks/encode_passages.py",  # a form of it
        "tasks/encode_results.py",  # the shapes that its vectors can be had in
    ),
    "fill": ("recipes/cpc.py", "recipes/mlm.py", "recipes/start.py"),  # what pretraining learns
    "summarize": ("cli/__init__.py", "cli/summarize.py"),
    "late-interaction": (
        "checkpoints/late_interaction.py",  # files of its own kinds
        "checkpoints/load.py",
        "search/late_interaction.py",  # passages by their tokens
    ),
    "tag": ("patterns/same_tag.py", "patterns/to_untagged.py"),  # which speak of the tags of rows
}
"""Files that name a task beside its own, the registry, the Reader and benchmarks: mostly doors to it."""


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_named_at_home_and_at_its_doors_only(task: str) -> None:
    naming = {file_of(module) for module in MODULES if task in task_names(module)}
    everywhere = (
        f"tasks/{task.replace('-', '_')}.py",
        "tasks/registry.py",
        "reader.py",
        "embedder.py",
        "token_embedder.py",
        "text_model.py",
        "bench/",
    )
    assert {file for file in naming if not file.startswith(everywhere)} == set(TASK_GUESTS.get(task, ()))


def task_names(module: str) -> Iterator[str]:
    """What a file could mean a task by: a string that is a name, or a module of tasks/ that it imports."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for name in imports_of(module):
        if name.startswith("longspan.tasks."):
            yield name.removeprefix("longspan.tasks.").replace("_", "-")


def test_no_config_is_asked_for_its_class_outside_of_its_family() -> None:
    asked = [
        f"{file_of(module)}:{line}: {name}"
        for module in MODULES
        for line, name in classes_tested(tree_of(module))
        if name.endswith("Config") and name != "GenerationConfig" and not _is_home(module, name)
    ]
    assert not asked


def _is_home(module: str, config: str) -> bool:
    """Whether the config is defined in the folder of a family that the module belongs to."""
    home = next(name for name in MODULES if config in _classes(name))
    return home.count(".") == 3 and module.startswith(home.rpartition(".")[0] + ".")


@cache
def _classes(module: str) -> frozenset[str]:
    return frozenset(node.name for node in ast.walk(tree_of(module)) if isinstance(node, ast.ClassDef))


def classes_tested(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each class that isinstance, issubclass, a comparison or a `case` tests for."""
    for node in ast.walk(tree):
        tested: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            tested = node.args[1:] if node.func.id in ("isinstance", "issubclass") else []
        elif isinstance(node, ast.Compare):
            tested = [
                side for side in node.comparators if isinstance(side, ast.Name | ast.Attribute | ast.Tuple)
            ]
        elif isinstance(node, ast.MatchClass):
            tested = [node.cls]
        for part in (part for side in tested for part in ast.walk(side)):
            if isinstance(part, ast.Name | ast.Attribute):
                yield part.lineno, part.id if isinstance(part, ast.Name) else part.attr


def test_every_way_to_ask_for_a_class_is_noticed() -> None:
    for code in (
        "isinstance(config, (A, model.LongformerConfig))",
        "issubclass(kind, LongformerConfig)",
        "type(config) is LongformerConfig",
        "match config:\n    case LongformerConfig(): ...",
    ):
        assert "LongformerConfig" in [name for _, name in classes_tested(ast.parse(code))], code


SOFTMAX = {
    "engine/reference.py": "the attention itself",
    "engine/backends/dense.py": "calls the reference",
    "engine/call.py": "calls the reference, to show probabilities",
    "engine/plain.py": "calls the reference, for exporters",
    "bench/char_lm.py": "torch's own attention, a peer",
    "bench/dense_etc.py": "the peer in plain torch",
    "bench/memory.py": "a load for the meter",
    "bench/peers.py": "torch's own attention, a peer",
    "generation/generate.py": "over words",
    "generation/logits_process.py": "over words",
    "generation/search.py": "over words",
    "generation/streaming.py": "over words",
    "nn/pooling.py": "over the tokens of a slot",
    "tasks/choose.py": "over choices",
    "tasks/classify.py": "over labels",
    "tasks/fill.py": "over words",
    "tasks/tag.py": "over labels",
}
"""Who calls a softmax, and over what: that of attention is written in engine/reference.py and the kernels."""


def test_the_softmax_of_attention_is_written_once() -> None:
    found = {
        file_of(module)
        for module in MODULES
        for node in ast.walk(tree_of(module))
        if (isinstance(node, ast.FunctionDef) and node.name == "softmax")
        or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("softmax", "product_attention")))
    }
    assert found == set(SOFTMAX)
