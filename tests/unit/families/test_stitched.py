"""Stitched: blocks read apart below, across blocks above, and everything that makes and reads such models."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.errors import InputError
from longspan.families.bert.model import Bert, BertConfig
from longspan.families.stitched.model import Stitched, StitchedConfig, blocks_of
from longspan.families.stitched.sif import counted, shipped
from longspan.layout import Layout
from longspan.lengthening.lengthen import lengthen, lengthened
from longspan.reader import Reader
from longspan.search.passages import encode
from longspan.tasks.registry import build
from longspan.text.blocks import in_blocks
from longspan.text.passages import tile
from unit.search.folders import text
from unit.tasks.tiny import VOCABULARY, tokenizer

SIZES: dict[str, Any] = {"vocab_size": 53, "width": 24, "layers": 3, "heads": 2, "feed_forward": 40}
POSITIONS = 64


def pair(**options: Any) -> tuple[Bert, Stitched]:
    """A short model, and one of the same weights in blocks."""
    torch.manual_seed(0)
    short = Bert(BertConfig(**SIZES, positions=POSITIONS, init_std=0.3)).eval()
    config = StitchedConfig(
        **SIZES, positions=POSITIONS, **{"block": 16, "radius": 5, "stitching": 1} | options
    )
    long = Stitched(config).eval()
    long.load_state_dict(short.state_dict())
    return short, long


def ids(count: int) -> torch.Tensor:
    return torch.randint(0, 53, (count,), generator=torch.Generator().manual_seed(count))


def reader(**options: Any) -> Reader:
    sizes = SIZES | {"vocab_size": VOCABULARY, "positions": POSITIONS, "init_std": 0.3}
    torch.manual_seed(5)
    config = StitchedConfig(
        **sizes, **{"block": 16, "radius": 5, "stitching": 1, "sif_weights": True} | options
    )
    model = build(config, "encode", pooling="sif").eval()
    torch.nn.init.uniform_(model.head.get_parameter("sif.weight"), 0.2, 1.0)
    return Reader(model, tokenizer("bert"), overflow="window")


@torch.no_grad()
@pytest.mark.parametrize("count", [1, 7, POSITIONS])
def test_what_the_short_model_can_read_is_read_as_it_would(count: int) -> None:
    short, long = pair()
    layout = Layout.packed([count])
    assert torch.equal(long(ids(count), layout), short(ids(count), layout))


@torch.no_grad()
def test_lower_layers_read_each_block_as_a_text_of_its_own() -> None:
    short, long = pair(stitching=0)
    tokens, starts = ids(200), [0, 11, 40, 90, 153]
    apart = short(tokens, Layout.packed(np.diff([*starts, 200]).tolist()))
    torch.testing.assert_close(long(tokens, Layout.packed([200], marked=[starts])), apart, rtol=0, atol=1e-5)


@torch.no_grad()
def test_upper_layers_see_across_blocks_and_no_farther_than_they_can() -> None:
    _, long = pair(stitching=1)
    starts = list(range(0, 200, 20))
    layout, tokens = Layout.packed([200], marked=[starts]), ids(200)
    before = long(tokens, layout)
    tokens[100] = (tokens[100] + 1) % 53
    changed = (long(tokens, layout) - before).abs().amax(1).nonzero().flatten()
    assert (int(changed[0]), int(changed[-1])) == (100 - 5, 119 + 5)  # its block, and a radius around it


@torch.no_grad()
def test_documents_of_a_batch_do_not_change_each_other() -> None:
    _, long = pair()
    one, two = ids(130), ids(99)
    marks = [[0, 50, 90], [0, 33, 66]]
    both = long(torch.cat([one, two]), Layout.packed([130, 99], marked=marks))
    torch.testing.assert_close(
        both[:130], long(one, Layout.packed([130], marked=marks[:1])), atol=1e-6, rtol=0
    )
    torch.testing.assert_close(
        both[130:], long(two, Layout.packed([99], marked=marks[1:])), atol=1e-6, rtol=0
    )


def test_blocks_of_padded_batches_leave_out_what_does_not_exist() -> None:
    mask = np.array([[1] * 9, [1] * 5 + [0] * 4], bool)
    marked = np.zeros((2, 9), bool)
    marked[:, [0, 3]] = True
    blocks = blocks_of(Layout.padded(mask, marked=marked))
    assert blocks.lengths.tolist() == [3, 6, 3, 2]
    assert blocks.sites.position[blocks.sites.exists].tolist() == [0, 1, 2, *range(6), 0, 1, 2, 0, 1]


def test_a_block_longer_than_the_table_is_an_error() -> None:
    _, long = pair()
    with pytest.raises(InputError, match=f"at most {POSITIONS} tokens"):
        long(ids(100), Layout.packed([100]))


@pytest.mark.parametrize(("name", "value"), [("block", 7), ("block", 65), ("stitching", 4), ("radius", 0)])
def test_configs_that_make_no_sense_are_errors(name: str, value: int) -> None:
    with pytest.raises(InputError, match=name):
        StitchedConfig(**SIZES | {"positions": POSITIONS, "block": 16} | {name: value})


def test_frames_stand_around_every_block_and_offsets_stay() -> None:
    whole = text(1, 40)
    plain = tokenizer("bert").encode(whole)
    framed, begins = in_blocks(plain, 32, 64)
    starts = np.flatnonzero(begins)
    assert starts[0] == 0
    assert (framed.ids[starts] == plain.ids[0]).all()
    assert (framed.ids[starts[1:] - 1] == plain.ids[-1]).all()
    assert np.diff([*starts, len(framed)]).max() <= 32
    kept = framed.source == 0
    assert np.array_equal(framed.ids[kept], plain.ids[plain.source == 0])
    assert np.array_equal(framed.offsets[kept], plain.offsets[plain.source == 0])


def test_a_short_text_and_its_pair_are_left_whole_and_a_long_pair_is_cut() -> None:
    plain = tokenizer("bert").encode("Rome is old.", text(1, 40))
    framed, begins = in_blocks(plain, 32, 64)
    assert begins[: np.flatnonzero(framed.source == 1)[0]].sum() == 1
    assert begins.sum() > 3
    same, only = in_blocks(tokenizer("bert").encode("Rome is old."), 32, 64)
    assert len(same) == len(tokenizer("bert").encode("Rome is old."))
    assert only.sum() == 1


def test_a_reader_reads_any_length_and_queries_as_the_short_model_does() -> None:
    made = reader()
    found = made.encode_with_details(text(1, 300))
    assert found["truncated"] == 0
    assert found["windows"] == 1
    assert found["n_tokens"] > len(made.tokenizer.encode(text(1, 300)))
    short = Reader(
        build(BertConfig(**SIZES | {"vocab_size": VOCABULARY, "positions": POSITIONS}), "encode"),
        made.tokenizer,
    )
    short.model.backbone.load_state_dict(made.model.backbone.state_dict())
    query = "Anna lives in Rome and works for a small company"
    np.testing.assert_allclose(made.encode_query(query), short.encode(query), atol=1e-6)
    assert np.abs(made.encode(query) - short.encode(query)).max() > 1e-3  # salience counts


def test_documents_beyond_what_is_read_at_once_are_cut_between_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, whole = reader(), text(1, 60)
    size = made.encode_with_details(whole)["n_tokens"]
    found = made.encode_with_details(whole, limit=size // 2)
    assert found["windows"] >= 2
    assert (found["n_tokens"], found["truncated"]) == (size, 0)
    cut = made.encode_with_details(whole, limit=size // 2, overflow="truncate")
    assert (cut["n_tokens"], cut["truncated"]) == (size // 2, size - size // 2)
    with pytest.raises(InputError, match="at most"):
        made.encode(whole, limit=size // 2, overflow="error")


def test_a_token_sixty_behind_a_passage_changes_it() -> None:
    made = reader(block=64, radius=40, stitching=2)
    whole = text(3, 200)
    starts = tile(whole)
    pieces = [whole[a:b] for a, b in pairwise([*starts, len(whole)])]
    middle = len(pieces) // 2
    before = encode(made, [pieces])[0].tables.vectors[1 + middle]
    offsets = made.tokenizer.encode(whole).offsets
    behind = int(np.searchsorted(offsets[:, 0], starts[middle + 1]))
    place = int(offsets[behind + 60, 0])
    number = int(np.searchsorted(starts, place, side="right")) - 1
    own = place - starts[number]
    letter = "x" if pieces[number][own] != "x" else "y"
    pieces[number] = pieces[number][:own] + letter + pieces[number][own + 1 :]
    assert not np.array_equal(encode(made, [pieces])[0].tables.vectors[1 + middle], before)


def test_lengthening_keeps_the_source_and_says_so(tmp_path: Path) -> None:
    torch.manual_seed(0)
    short = build(BertConfig(**SIZES, positions=POSITIONS, init_std=0.3), "encode").eval()
    save_model(short, tmp_path / "short")
    weights = torch.linspace(0.1, 1, 53)
    report = lengthen(
        tmp_path / "short", out=tmp_path / "long", pattern="stitched", block=16, radius=5, sif_weights=weights
    )
    assert (report.pattern, report.equal_up_to, report.max_difference) == ("stitched", POSITIONS, 0.0)
    assert not report.loads_in_transformers
    loaded = load_model(tmp_path / "long").model
    assert isinstance(loaded.config, StitchedConfig)
    assert torch.equal(loaded.head.get_parameter("sif.weight").flatten(), weights)
    save_model(loaded, tmp_path / "again")
    again = load_model(tmp_path / "again").model
    assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), again.parameters(), strict=True))
    tokens = ids(150)
    layout = Layout.packed([150], marked=[[0, 60, 100]])
    with torch.no_grad():
        assert torch.equal(again(tokens, layout), loaded(tokens, layout))


@pytest.mark.parametrize("task", ["fill", "classify", "tag", "answer", "choose"])
def test_every_head_survives_lengthening(task: str) -> None:
    torch.manual_seed(0)
    short = build(BertConfig(**SIZES, positions=POSITIONS, init_std=0.3), task).eval()
    long = lengthened(short, 4096, pattern="stitched", block=16)
    layout = Layout.packed([20, 9])
    with torch.no_grad():
        assert torch.equal(long(ids(29), layout), short(ids(29), layout))


def test_options_of_other_patterns_are_errors() -> None:
    short = build(BertConfig(**SIZES, positions=POSITIONS), "encode")
    for wrong in ({"period": 9}, {"positions": "random"}, {"sif_weights": torch.ones(3)}):
        with pytest.raises(InputError):
            lengthened(short, 4096, pattern="stitched", block=16, **wrong)
    with pytest.raises(InputError, match="stitched"):
        lengthened(short, 4096, stitching=1)


def test_rare_words_count_more_and_a_model_without_salience_says_so() -> None:
    made = tokenizer("bert")
    salience = counted(made, [["Anna lives in Rome", "Anna"]])
    frequent, rare = made.encode("Anna").ids[1], made.encode("bridge").ids[1]
    assert salience[rare] > salience[frequent]
    assert salience[made.encode("Anna").ids[0]] == 0.5
    plain = Reader(build(BertConfig(**SIZES | {"vocab_size": VOCABULARY}), "encode"), made)
    with pytest.raises(InputError, match="SIF weights"):
        plain.encode("Rome", pooling="sif")


def test_the_shipped_table_is_one_of_weights() -> None:
    table = shipped()
    assert table.shape == (30522,)
    assert 0 < float(table.min()) < 0.3
    assert float(table.max()) <= 1
