"""A lengthened model gives the numbers of transformers' short one, and of the long one it loads."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from helpers import task_name
from longspan.checkpoints.load import load_model
from longspan.layout import Layout
from longspan.lengthening.lengthen import lengthen
from longspan.lengthening.report import LengthenReport
from parity.peers import HEADS, close, hidden, output, peer, words

SHORT: dict[str, tuple[str, dict[str, Any]]] = {
    **{family: (family, {}) for family in ("Bert", "Roberta", "XLMRoberta", "Camembert", "DistilBert")},
    "Electra": ("Electra", {"embedding_size": 24}),
    "narrow Electra": ("Electra", {}),
    "MPNet": ("MPNet", {}),
}
MINILM = ("Bert", {"hidden_size": 36, "intermediate_size": 144})
INEXPRESSIBLE = ("narrow Electra", "MPNet")
TO = 777
RADIUS = 20
TASKS = dict(zip(HEADS, ("encode", "fill", "classify", "tag", "answer", "choose"), strict=True))


@pytest.fixture(autouse=True)
def engine() -> str:
    """Weights are lengthened, not kernels: each test runs once."""
    return "native"


def source(folder: Path, name: str, head: str, **changes: Any) -> Any:
    """A short model of transformers, saved."""
    family, options = MINILM if name == "MiniLM" else SHORT[name]
    theirs = peer(family, head, **options | changes)
    theirs.save_pretrained(folder)
    return theirs


def made(folder: Path, pattern: str, **options: Any) -> LengthenReport:
    size = {"radius": RADIUS} if pattern == "longformer" else {"block": 4}
    return lengthen(folder / "short", TO, out=folder / "long", pattern=pattern, **size | options)


@pytest.mark.parametrize("pattern", ["longformer", "bigbird"])
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family", SHORT)
def test_every_head_of_every_family_is_kept(tmp_path: Path, family: str, head: str, pattern: str) -> None:
    theirs = source(tmp_path / "short", family, head)
    report = made(tmp_path, pattern)
    loaded = load_model(tmp_path / "long")
    assert not loaded.report
    assert task_name(loaded.model) == report.task == TASKS[head]
    assert report.equal_up_to == (RADIUS + 1 if pattern == "longformer" else (5 + 2 * 3) * 4)
    (ids,) = words(report.equal_up_to)
    expected = output(theirs(ids[None, None] if head.endswith("Choice") else ids[None]))
    given = hidden(loaded.model)(ids, Layout.packed([len(ids)], marked=[[0]]))
    close((given[0] if expected.dim() == 1 else given).detach(), expected.detach())
    assert loaded.model(words(TO)[0], Layout.packed([TO], marked=[[0]])).isfinite().all()


@pytest.mark.parametrize("to", [200, 233])
@pytest.mark.parametrize("pattern", ["longformer", "bigbird"])
@pytest.mark.parametrize("family", [*SHORT, "MiniLM"])
def test_every_family_stays_equal_at_any_length(tmp_path: Path, family: str, pattern: str, to: int) -> None:
    theirs = source(tmp_path / "short", family, "Model")
    size: dict[str, Any] = {"radius": (25, RADIUS)} if pattern == "longformer" else {"block": 2}
    report = lengthen(tmp_path / "short", to, out=tmp_path / "long", pattern=pattern, **size)
    ours = load_model(tmp_path / "long").model
    assert (report.to, ours.config.positions) == (to, to)
    for n in (1, 2, 13, report.equal_up_to):
        (ids,) = words(n, seed=n)
        expected = output(theirs(ids[None])).detach()
        for marked in ([], [0], range(n)):
            close(ours.backbone(ids, Layout.packed([n], marked=[marked])).detach(), expected, f"{n} tokens")


@pytest.mark.parametrize("pattern", ["longformer", "bigbird"])
@pytest.mark.parametrize("head", HEADS[:-1])
@pytest.mark.parametrize("family", SHORT)
def test_transformers_loads_what_it_can_express(tmp_path: Path, family: str, head: str, pattern: str) -> None:
    source(tmp_path / "short", family, head)
    report = made(tmp_path, pattern)
    if not report.loads_in_transformers:
        odd_head = head == "ForSequenceClassification" and family in ("DistilBert", "Electra")
        bigbird_head = pattern == "bigbird" and head in (HEADS[2], HEADS[4])
        assert odd_head or bigbird_head or family in INEXPRESSIBLE
        assert loaded_type(tmp_path).startswith("longspan-")
        return
    assert family not in INEXPRESSIBLE
    kind = getattr(transformers, ("Longformer" if pattern == "longformer" else "BigBird") + head)
    theirs, complaints = kind.from_pretrained(tmp_path / "long", output_loading_info=True)
    spare = {key for key in complaints["missing_keys"] if "pooler" not in key}
    assert not spare
    assert not complaints["unexpected_keys"]
    ours = hidden(load_model(tmp_path / "long").model)
    (ids,) = words(701)
    given: dict[str, Any] = {}
    marked: list[int] = []
    if pattern == "longformer" and head in (HEADS[2], HEADS[4]):
        marked = [0]
        given["global_attention_mask"] = (torch.arange(701) == 0).long()[None]
    expected = output(theirs.eval()(ids[None], **given)).detach()
    found = ours(ids, Layout.packed([701], marked=[marked])).detach()
    close(found[0] if expected.dim() == 1 else found, expected)


def loaded_type(folder: Path) -> str:
    return str(load_model(folder / "long").config["model_type"])


def test_another_activation_in_a_bert_is_kept_in_the_head_of_words(tmp_path: Path) -> None:
    theirs = source(tmp_path / "short", "Bert", "ForMaskedLM", hidden_act="relu")
    report = made(tmp_path, "longformer")
    assert report.why_not == "another activation in the head"
    (ids,) = words(RADIUS + 1)
    close(
        load_model(tmp_path / "long").model(ids, Layout.packed([21])).detach(),
        output(theirs(ids[None])).detach(),
    )


def test_token_types_are_kept(tmp_path: Path) -> None:
    theirs = source(tmp_path / "short", "Bert", "ForSequenceClassification")
    (ids,) = words(RADIUS + 1)
    types = (torch.arange(21) > 9).long()
    expected = theirs(ids[None], token_type_ids=types[None]).logits.detach()
    for pattern in ("longformer", "bigbird"):
        lengthen(tmp_path / "short", TO, out=tmp_path / pattern, pattern=pattern)
        close(load_model(tmp_path / pattern).model(ids, Layout.packed([21]), types).detach(), expected)


@pytest.mark.parametrize("pattern", ["longformer", "bigbird"])
def test_transformers_chooses_alike(tmp_path: Path, pattern: str) -> None:
    source(tmp_path / "short", "Roberta", "ForMultipleChoice")
    assert made(tmp_path, pattern).loads_in_transformers
    kind = (
        transformers.LongformerForMultipleChoice
        if pattern == "longformer"
        else transformers.BigBirdForMultipleChoice
    )
    theirs = kind.from_pretrained(tmp_path / "long").eval()
    (ids,) = words(701)
    given = (
        {"global_attention_mask": torch.zeros(1, 1, 701, dtype=torch.long)} if pattern == "longformer" else {}
    )
    expected = theirs(ids[None, None], **given).logits[0].detach()
    close(load_model(tmp_path / "long").model(ids, Layout.packed([701], marked=[[]]))[0].detach(), expected)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("family", [*(name for name in SHORT if name not in INEXPRESSIBLE), "MiniLM"])
def test_etc_without_global_tokens_is_every_head_of_every_family(
    tmp_path: Path, family: str, head: str
) -> None:
    theirs = source(tmp_path / "short", family, head)
    report = lengthen(tmp_path / "short", TO, out=tmp_path / "long", pattern="etc", radius=RADIUS)
    loaded = load_model(tmp_path / "long")
    assert not loaded.report
    assert task_name(loaded.model) == report.task == TASKS[head]
    assert (report.equal_up_to, report.notes["global tokens"]) == (RADIUS + 1, "none")
    (ids,) = words(report.equal_up_to)
    expected = output(theirs(ids[None, None] if head.endswith("Choice") else ids[None]))
    given = hidden(loaded.model)(ids, Layout.packed([len(ids)], marked=[[0]]))
    close((given[0] if expected.dim() == 1 else given).detach(), expected.detach())
    assert loaded.model(words(TO)[0], Layout.packed([TO])).isfinite().all()
