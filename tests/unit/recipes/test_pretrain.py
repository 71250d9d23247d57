"""Pretraining: a model learns, goes on after a stop, and is an ordinary folder afterwards."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM

import longspan
from longspan.corpus.store import Corpus
from longspan.errors import InputError
from longspan.lengthening.lengthen import lengthen, lengthened
from longspan.recipes.data import corpus_of
from longspan.recipes.frozen import new_positions
from longspan.recipes.masking import Masking
from longspan.recipes.pretrain import pretrain
from longspan.recipes.pretrain_plan import PretrainConfig, Pretraining
from longspan.recipes.start import Start, mirrors
from longspan.tasks.fill import FILL
from longspan.text.tokenizer import Tokenizer
from unit.corpus.small import corpus, text, tokenizer, written
from unit.recipes.small import SIZES

TABLE = "backbone.embeddings.positions.weight"
QUICK = PretrainConfig(steps=3, batch_tokens=500, lr=1e-3, dev_tokens=300)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus(tmp_path_factory.mktemp("corpus"), 12)


def new(preset: str = "roberta-base", **changes: object) -> Start:
    return Start.from_preset(preset, tokenizer(), length=64, changes={**SIZES, **changes})


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return longspan.load(folder, task="fill").model.state_dict()


def test_a_few_texts_are_learnt_by_heart(tmp_path: Path) -> None:
    start = new(width=64, heads=4, feed_forward=128, dropout=0.0, attention_dropout=0.0)
    config = PretrainConfig(steps=200, batch_tokens=1000, lr=1e-2, dev=0.0)
    report = pretrain(start, corpus(tmp_path, 4), tmp_path / "model", config, progress=False)
    assert report.training.loss is not None
    assert report.training.loss < 1.0  # it was log(320) = 5.8
    assert report.before == report.after == {}
    reader, words = longspan.load(tmp_path / "model"), text(3, 40).split()
    places = [k for k in range(5, 35) if "." not in words[k]]
    masked = [" ".join([*words[:k], "<mask>", *words[k + 1 :]]).replace(" <mask>", "<mask>") for k in places]
    found: list[Any] = reader.fill(masked, top_k=1)
    guessed = [best["token_str"].strip() for (best,) in found]
    assert sum(guess == words[k] for guess, k in zip(guessed, places, strict=True)) > 0.4 * len(places)


def test_the_folder_is_read_by_transformers_and_says_how_it_was_made(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "model"
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr("sys.argv", ["/usr/bin/longspan", "pretrain", "--steps", "3"])
    report = pretrain(new("longformer-base", radius=4), small, out, QUICK, progress=False)
    assert report.before["loss"] > 0
    assert report.after.keys() == {"loss", "bits_per_token", "bits_per_character"}
    theirs = AutoModelForMaskedLM.from_pretrained(out).eval()
    reader = longspan.load(out)
    ids = torch.from_numpy(reader.tokenizer.encode("the cat sat on a mat").ids.copy())
    with torch.no_grad():
        ours = reader.model(ids, longspan.Layout.packed([len(ids)]))
        torch.testing.assert_close(ours, theirs(ids[None]).logits[0], rtol=1e-4, atol=1e-5)
    page = (out / "README.md").read_text()
    assert "\nlongspan pretrain --steps 3\n" in page
    assert f"{report.after['bits_per_token']:.4f}" in page
    assert reader.tokenizer.limit == 64
    assert "bits_per_token" in str(report)
    assert report.to_dict()["training"]["steps"] == 3


def test_a_run_that_is_stopped_goes_on_and_ends_with_the_same_bits(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrain(new(), small, tmp_path / "whole", QUICK, progress=False)
    calls, real = 0, FILL.loss_sum

    def stopping(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 8:
            raise KeyboardInterrupt
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr("longspan.recipes.mlm.FILL", replace(FILL, loss_sum=stopping))
        with pytest.raises(KeyboardInterrupt):
            pretrain(new(), small, tmp_path / "stopped", QUICK, progress=False)
    assert not (tmp_path / "stopped/config.json").exists()
    pretrain(new(), small, tmp_path / "stopped", QUICK, progress=False)
    whole, again = (weights(tmp_path / name) for name in ("whole", "stopped"))
    assert all(torch.equal(whole[name], again[name]) for name in whole)


@pytest.fixture(scope="module")
def long(small: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 24 tokens, lengthened to 128."""
    folder = tmp_path_factory.mktemp("long")
    start = Start.from_preset("roberta-base", tokenizer(), length=24, changes=SIZES)
    pretrain(start, small, folder / "short", QUICK, progress=False)
    lengthen(folder / "short", 128, out=folder / "long", radius=8)
    return folder / "long"


@pytest.mark.parametrize("options", [{}, {"dtype": "bfloat16"}])
def test_frozen_changes_new_positions_only(
    small: Corpus, long: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    before, start = weights(long), Start.from_folder(long)
    config = replace(QUICK, frozen=True, length=60, **options)
    assert "trained: positions 24 to 127\n" in str(Pretraining(start, small, config))
    pretrain(start, small, tmp_path / "trained", config, progress=False)
    after = weights(tmp_path / "trained")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {TABLE}
    rows = (before[TABLE] != after[TABLE]).any(1)
    assert rows.nonzero().flatten().tolist() == list(range(2 + 24, 2 + 60))  # two rows lead, for padding
    assert all(torch.equal(p, after[name]) for name, p in start.model.state_dict().items())
    assert all(p.requires_grad for p in start.model.parameters())


def test_frozen_trains_the_whole_table_if_it_repeats_nothing(small: Corpus, tmp_path: Path) -> None:
    start = new()
    before, config = start.model.get_parameter(TABLE).detach().clone(), replace(QUICK, frozen=True)
    assert "trained: positions 0 to 63: its table repeats nothing" in str(Pretraining(start, small, config))
    pretrain(start, small, tmp_path / "trained", config, progress=False)
    assert (start.model.get_parameter(TABLE) != before).any(1)[2:].all()


@pytest.mark.parametrize(("period", "begin"), [(None, 24), (20, 20)])
def test_new_positions_are_those_behind_the_first_copy(period: int | None, begin: int) -> None:
    short = Start.from_preset("roberta-base", tokenizer(), length=24, changes=SIZES).model
    assert new_positions(lengthened(short, 100, radius=8, period=period)) == range(begin, 100)
    assert new_positions(lengthened(short, 100, radius=8, positions="interpolate")) == range(100)


def test_frozen_needs_new_positions_that_examples_reach(small: Corpus, long: Path) -> None:
    with pytest.raises(InputError, match="`frozen` must be used with a model that has a table of positions"):
        Pretraining(new("modernbert-base"), small, replace(QUICK, frozen=True))
    with pytest.raises(InputError, match="`length` must be above 24, where new positions begin"):
        Pretraining(Start.from_folder(long), small, replace(QUICK, frozen=True, length=24))


def test_a_second_level_that_begins_at_zero_learns(small: Corpus, tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"radius": 4, "wide_radius": 20, "two_level": (0, 1)}
    model = lengthened(new().model, 128, pattern="poolingformer", **sizes)
    before = {name: p.clone() for name, p in model.named_parameters() if ".second." in name}
    assert any(not p.any() for p in before.values())
    pretrain(replace(new(), model=model), small, tmp_path / "model", QUICK, progress=False)
    same = [name for name, p in before.items() if torch.equal(p, model.get_parameter(name))]
    assert before
    assert not [name for name in same if not name.endswith("key.bias")]  # softmax does not see that one


def test_what_only_sentences_depend_on_is_trained_with_them(small: Corpus, tmp_path: Path) -> None:
    for cpc in (True, False):
        model = new("etc-base", radius=5).model
        names = [name for name, _ in model.named_parameters() if "layers.1.attention.global_out" in name]
        before = [model.get_parameter(name).clone() for name in names]
        start = replace(new("etc-base", radius=5), model=model)
        pretrain(start, small, tmp_path / str(cpc), replace(QUICK, cpc=cpc), progress=False)
        same = [torch.equal(p, model.get_parameter(name)) for p, name in zip(before, names, strict=True)]
        assert same == [not cpc] * 2


def test_global_projections_stay_copies_of_the_local_ones_where_they_were(
    small: Corpus, tmp_path: Path
) -> None:
    start = new("longformer-base", radius=4)
    assert len(mirrors(start.model)) == 2
    pretrain(start, small, tmp_path / "copies", QUICK, progress=False)
    assert len(mirrors(start.model)) == 2
    other = new("longformer-base", radius=4)
    with torch.no_grad():
        other.model.get_parameter("backbone.layers.0.attention.global_key.weight").add_(1.0)
    kept = other.model.get_parameter("backbone.layers.0.attention.global_key.weight").clone()
    pretrain(other, small, tmp_path / "own", QUICK, progress=False)
    assert torch.equal(kept, other.model.get_parameter("backbone.layers.0.attention.global_key.weight"))
    assert all(parameter.requires_grad for parameter in other.model.parameters())


def test_sentences_are_predicted_by_models_with_global_tokens(small: Corpus, tmp_path: Path) -> None:
    start = new("etc-base", radius=5)
    report = pretrain(start, small, tmp_path / "etc", replace(QUICK, cpc=True), progress=False)
    assert report.training.steps == 3
    pieces = replace(QUICK, cpc=True, micro_tokens=100)
    with pytest.raises(InputError, match="`out` must be that of a run whose `micro_tokens` is 100"):
        pretrain(new("etc-base", radius=5), small, tmp_path / "etc", pieces, progress=False)
    with pytest.raises(InputError, match="`cpc` must be used with a model whose global tokens"):
        pretrain(new(), small, tmp_path / "roberta", replace(QUICK, cpc=True), progress=False)


def test_minutes_become_steps_that_a_run_keeps(small: Corpus, tmp_path: Path) -> None:
    config = replace(QUICK, steps=None, minutes=0.02)
    first = pretrain(new(), small, tmp_path / "model", config, progress=False)
    again = pretrain(new(), small, tmp_path / "model", config, progress=False)
    assert first.training.steps == again.training.steps >= 1


def test_a_folder_of_another_run_or_model_is_not_touched(small: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "model"
    pretrain(new(), small, out, QUICK, progress=False)
    with pytest.raises(InputError, match=r"`out` must be that of a run whose `masking` is .*'word'"):
        pretrain(new(), small, out, replace(QUICK, masking=Masking(unit="word")), progress=False)
    (out / "pretrain.json").unlink()
    with pytest.raises(InputError, match="`out` must be a new folder, or that of a run"):
        pretrain(new(), small, out, QUICK, progress=False)


def test_what_does_not_fit_is_refused_before_anything_is_trained(small: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`length` must be at most 64"):
        Pretraining(new(), small, replace(QUICK, length=65))
    other = Start.from_preset("bert-base", tokenizer("wordpiece"), changes=SIZES)
    with pytest.raises(InputError, match="`tokenizer` must be the one that made"):
        Pretraining(other, small, QUICK)
    with pytest.raises(InputError, match="`tokenizer` must be of at most 9 words"):
        new(vocab_size=9)
    with pytest.raises(InputError, match="There is no option `layer`"):
        new(layer=3)
    with pytest.raises(InputError, match="`config` must be one of"):
        new("led-base")
    with pytest.raises(InputError, match="given, or epochs, or minutes"):
        PretrainConfig()
    bare = Tokenizer.from_json(tokenizer().to_json(), {"mask": "<mask>"})
    with pytest.raises(InputError, match="The tokenizer has no padding token"):
        Start.from_preset("bert-base", bare)


def test_a_corpus_is_opened_or_built_with_the_tokenizer_that_is_meant(
    small: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(corpus_of(small.folder, tmp_path / "unused", tokenizer())) == 12
    with pytest.raises(InputError, match="`tokenizer` must be the one that made"):
        corpus_of(small.folder, tmp_path / "unused", tokenizer("wordpiece"))
    data = written(tmp_path / "texts", 9)
    with pytest.raises(InputError, match="There is no tokenizer"):
        corpus_of(data, tmp_path / "corpus", None)
    first = corpus_of(data, tmp_path / "corpus", "wordpiece", vocab_size=150)
    again = corpus_of(data, tmp_path / "corpus", "wordpiece", vocab_size=150)
    assert first.fingerprint == again.fingerprint
    with pytest.raises(InputError, match="a corpus of the same tokenizer"):
        corpus_of(data, tmp_path / "corpus", "wordpiece", vocab_size=120)
    assert len(corpus_of(data, tmp_path / "other", small.folder / "tokenizer")) == 9
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="Several processes cannot build one corpus"):
        corpus_of(data, tmp_path / "third", tokenizer())
