"""Short models become long ones: positions, files, the self-check, mistakes, and the command."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch

import longspan
from longspan.checkpoints.load import load_model
from longspan.checkpoints.save import save_model
from longspan.cli import main
from longspan.errors import CheckpointError, InputError
from longspan.families.bert.model import BertConfig
from longspan.families.longformer.attention import LongformerAttention
from longspan.families.longformer.model import LongformerConfig
from longspan.families.task_model import TaskModel
from longspan.layout import Layout
from longspan.lengthening import lengthen as module
from longspan.lengthening.lengthen import lengthen, lengthened
from longspan.lengthening.positions import stretched
from longspan.nn.heads import PoolingHead
from longspan.tasks.registry import build
from longspan.text.tokenizer import Tokenizer

POSITIONS = "backbone.embeddings.positions.weight"
SMALL: dict[str, Any] = {"vocab_size": 41, "width": 12, "layers": 2, "heads": 3, "feed_forward": 20}
SHORT = 61


def tiny(task: str = "encode", **changes: Any) -> TaskModel:
    torch.manual_seed(0)
    return build(BertConfig(**SMALL | {"positions": SHORT} | changes), task).eval()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sentence-transformers folder with a tokenizer, prompts and a license."""
    model = TaskModel(tiny().backbone, PoolingHead(12, pooling="first", normalize=True), "Model")
    place = tmp_path / "short"
    save_model(model, place)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(chr(97 + i) for i in range(26))]
    backend = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]")
    )
    backend.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    Tokenizer(backend, limit=SHORT).save(place, token_types=True)
    prompts = {"prompts": {"query": "q: "}, "default_prompt_name": None}
    (place / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (place / "README.md").write_text("---\nlanguage: en\nlicense: apache-2.0\n---\n# Tiny\n")
    return place


def test_positions_are_repeated_with_any_period_to_any_length() -> None:
    rows = torch.randn(7, 3)
    assert torch.equal(stretched(rows, 23), rows[torch.arange(23) % 7])
    assert torch.equal(stretched(rows, 23, period=5), rows[torch.arange(23) % 5])
    assert torch.equal(stretched(rows, 7), rows)


def test_interpolated_positions_keep_the_ends() -> None:
    rows = torch.randn(7, 3)
    long = stretched(rows, 19, "interpolate")
    assert torch.equal(long[::3], rows)
    torch.testing.assert_close(long[1], rows[0] * 2 / 3 + rows[1] / 3)
    odd = stretched(rows, 22, "interpolate")
    torch.testing.assert_close(odd[[0, -1]], rows[[0, -1]])


def test_random_positions_are_drawn_beyond_the_known_ones_only() -> None:
    rows = torch.randn(7, 3)
    long = stretched(rows, 5000, "random", std=0.5)
    assert torch.equal(long[:7], rows)
    assert 0.45 < long[7:].std() < 0.55
    assert torch.equal(long, stretched(rows, 5000, "random", std=0.5))


@pytest.mark.parametrize("pattern", ["longformer", "bigbird"])
def test_the_first_rows_of_a_roberta_are_no_positions(pattern: str) -> None:
    source = tiny(position_offset=2, pad_id=1, token_types=1)
    before = source.get_parameter(POSITIONS)
    after = lengthened(source, 100, pattern=pattern).get_parameter(POSITIONS)
    kept = 2 if pattern == "longformer" else 0
    assert torch.equal(after[:kept], before[:kept])
    assert torch.equal(after[kept:], before[2:][torch.arange(100) % SHORT])


def test_a_bert_gets_a_row_for_padding_and_its_global_projections_are_copies() -> None:
    source = tiny()
    target = lengthened(source, 100, radius=(8, 4))
    assert isinstance(target.config, LongformerConfig)
    assert (target.config.radius, target.config.position_offset) == ((8, 4), 1)
    assert target.get_parameter(POSITIONS)[0].abs().sum() == 0
    attention = target.get_submodule("backbone.layers.1.attention")
    assert isinstance(attention, LongformerAttention)
    keys = attention.qkv.weight[12:24]
    assert torch.equal(attention.global_key.weight, keys)
    assert attention.global_key.weight.data_ptr() != keys.data_ptr()


def test_a_decoder_stays_tied_or_apart() -> None:
    tied = tiny("fill")
    new = lengthened(tied, 100)
    assert new.get_parameter("head.decoder.weight") is new.backbone.word_embeddings.weight
    tied.head.decoder.weight = torch.nn.Parameter(torch.randn(41, 12))  # type: ignore[union-attr]
    new = lengthened(tied, 100)
    assert new.get_parameter("head.decoder.weight") is tied.get_parameter("head.decoder.weight")


def test_everything_of_a_sentence_transformers_folder_is_written(folder: Path, tmp_path: Path) -> None:
    report = longspan.lengthen(folder, 777, out=tmp_path / "long", radius=16)
    assert (report.short, report.to, report.equal_up_to) == (SHORT, 777, 17)
    assert report.max_difference <= 1e-5
    assert report.loads_in_transformers
    assert [one.tokens for one in report.drift] == [17, 32, SHORT]
    assert report.drift[0].cosine == pytest.approx(1.0, abs=1e-5)
    head = load_model(tmp_path / "long").model.head
    assert isinstance(head, PoolingHead)
    assert (head.pooling, head.normalize) == ("first", True)
    reader = longspan.load(tmp_path / "long")
    assert reader.tokenizer.limit == 777
    assert reader.prompts == {"query": "q: "}
    assert reader.encode("a b c " * 200).shape == (12,)
    text = (tmp_path / "long" / "README.md").read_text()
    assert text.startswith("---\nlicense: apache-2.0\n")
    assert "lengthened from 61 to 777 tokens" in text
    assert str(tmp_path) not in text
    limits = json.loads((tmp_path / "long" / "sentence_bert_config.json").read_text())
    assert limits["max_seq_length"] == 777


@pytest.mark.parametrize("positions", ["interpolate", "random"])
def test_other_positions_are_written_and_their_drift_is_told(
    folder: Path, tmp_path: Path, positions: str
) -> None:
    report = lengthen(folder, 200, out=tmp_path / "long", positions=positions)
    assert report.max_difference <= 1e-5
    assert report.period is None
    assert (report.drift[0].mean_difference > 1e-3) == (positions == "interpolate")


def test_a_period_limits_where_both_are_equal(folder: Path) -> None:
    report = lengthen(folder, 200, radius=30, period=9)
    assert (report.equal_up_to, report.period, report.folder) == (9, 9, None)


def test_half_types_are_kept(tmp_path: Path) -> None:
    save_model(tiny("tag").to(torch.bfloat16), tmp_path / "short")
    lengthen(tmp_path / "short", 100, out=tmp_path / "long")
    weight = load_model(tmp_path / "long").model.backbone.word_embeddings.weight
    assert weight.dtype == torch.bfloat16


def test_a_failed_check_writes_nothing(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "difference", lambda *given: float("nan"))
    with pytest.raises(CheckpointError, match="lengthened, it differs"):
        lengthen(folder, 100, out=tmp_path / "long")
    assert [path.name for path in tmp_path.iterdir()] == ["short"]


def test_a_crash_while_writing_leaves_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*given: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module, "written_files", crash)
    with pytest.raises(OSError, match="disk full"):
        lengthen(folder, 100, out=tmp_path / "long")
    assert [path.name for path in tmp_path.iterdir()] == ["short"]


def test_a_model_is_replaced_only_if_asked(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "long"
    lengthen(folder, 100, out=out)
    with pytest.raises(InputError, match=r"`out` must be a new or empty folder.*--force"):
        lengthen(folder, 200, out=out)
    assert load_model(out).model.config.positions == 100
    lengthen(folder, 200, out=out, force=True)
    assert load_model(out).model.config.positions == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == ["long", "short"]


def test_a_folder_that_is_no_model_is_never_replaced(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="`out` must be a new or empty folder"):
        lengthen(folder, 100, out=tmp_path / "mine", force=True)
    with pytest.raises(InputError, match="`out` must be another folder than the source's"):
        lengthen(folder, 100, out=folder, force=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"to": 60}, "`to` must be at least 61, but is 60"),
        ({"period": 62}, "`period` must be at most 61"),
        ({"period": 0}, "`period` must be at least 1"),
        ({"period": 9, "positions": "random"}, "`period` must be None unless positions are copied"),
        ({"positions": "guess"}, "`positions` must be one of copy, interpolate, random"),
        ({"pattern": "reformer"}, "`pattern` must be one of longformer, "),
        ({"block": 64}, "`block` must be given for stitched, bigbird, etc only"),
        (
            {"radius": 8, "pattern": "bigbird"},
            "`radius` must be given for longformer, stitched, etc, poolingformer, rope only",
        ),
        ({"radius": (1, 2, 3)}, "`radius` must be one number, or one for each of the 2 layers"),
    ],
)
def test_mistakes_are_told(folder: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        lengthen(folder, **{"to": 100} | options)


def test_a_long_model_is_not_lengthened_again(folder: Path, tmp_path: Path) -> None:
    lengthen(folder, 100, out=tmp_path / "long")
    with pytest.raises(InputError, match="`source` must be a short model"):
        lengthen(tmp_path / "long", 200)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (
            {"model_type": "mpnet", "relative_attention_num_buckets": 64},
            "`relative_attention_num_buckets` must be 32, but is 64",
        ),
        ({"model_type": "electra", "embedding_size": 0}, "`embedding_size` must be at least 1"),
        ({"model_type": "electra", "embedding_size": 256, "summary_type": "mean"}, "`summary_type` must be"),
    ],
)
def test_a_source_that_cannot_be_computed_is_refused_by_name(
    tmp_path: Path, config: dict[str, Any], words: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=words):
        lengthen(tmp_path)


def test_the_command_speaks_json(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "long"
    given = ["lengthen", str(folder), "--to", "99", "--out", str(out), "--radius", "8,4", "--period", "40"]
    assert main([*given, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["to"], told["radius"], told["period"], told["equal_up_to"]) == (99, [8, 4], 40, 5)
    assert (told["folder"], told["loads_in_transformers"]) == (str(out), True)
    assert main(given) == 2
    assert "`out` must be a new or empty folder" in capsys.readouterr().err
    assert main(["lengthen", str(folder), "--pattern", "bigbird", "--block", "4", "--to", "99"]) == 0
    assert "bigbird, block 4, 99 tokens" in capsys.readouterr().out
    assert main(["lengthen", str(folder), "--radius", "wide"]) == 2
    assert "`radius` must be a whole number" in capsys.readouterr().err


def test_long_documents_are_read_beyond_the_old_limit() -> None:
    target = lengthened(tiny("tag"), 777, radius=5)
    ids = torch.randint(41, (777,), generator=torch.Generator().manual_seed(1))
    assert target(ids, Layout.packed([777])).shape == (777, 2)


def test_the_card_names_the_command_that_makes_the_same_model(folder: Path, tmp_path: Path) -> None:
    lengthen(folder, 90, out=tmp_path / "one", radius=(9, 4), period=17)
    card = (tmp_path / "one" / "README.md").read_text()
    (command,) = [line for line in card.splitlines() if line.startswith("longspan lengthen ")]
    words = {"SOURCE": str(folder), "OUT": str(tmp_path / "two")}
    assert main([words.get(word, word) for word in shlex.split(command)[1:]]) == 0
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two
