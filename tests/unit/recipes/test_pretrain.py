"""Pretraining: a model learns, goes on after a stop, and is an ordinary folder afterwards."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForMaskedLM

import longspan
from longspan.corpus.store import Corpus
from longspan.errors import InputError
from longspan.lengthening.lengthen import lengthen
from longspan.recipes.data import corpus_of
from longspan.recipes.masking import Masking
from longspan.recipes.pretrain import PretrainConfig, Pretraining, pretrain
from longspan.recipes.start import Start, mirrors, train_positions_only
from longspan.tasks.fill import FILL
from longspan.text.tokenizer import Tokenizer
from unit.corpus.small import corpus, text, tokenizer, written
from unit.recipes.small import SIZES

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


def test_the_folder_is_read_by_transformers_and_says_how_it_was_made(small: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "model"
    report = pretrain(
        new("longformer-base", radius=4), small, out, QUICK, command="longspan x", progress=False
    )
    assert report.before["loss"] > 0
    assert report.after.keys() == {"loss", "bits_per_token", "bits_per_character"}
    theirs = AutoModelForMaskedLM.from_pretrained(out).eval()
    reader = longspan.load(out)
    ids = torch.from_numpy(reader.tokenizer.encode("the cat sat on a mat").ids.copy())
    with torch.no_grad():
        ours = reader.model(ids, longspan.Layout.packed([len(ids)]))
        torch.testing.assert_close(ours, theirs(ids[None]).logits[0], rtol=1e-4, atol=1e-5)
    page = (out / "README.md").read_text()
    assert "longspan x" in page
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


def test_frozen_changes_positions_only(small: Corpus, tmp_path: Path) -> None:
    pretrain(new(), small, tmp_path / "short", QUICK, progress=False)
    lengthen(tmp_path / "short", 128, out=tmp_path / "long", radius=8)
    before = weights(tmp_path / "long")
    start = Start.from_folder(tmp_path / "long")
    config = replace(QUICK, frozen=True, length=100)
    pretrain(start, small, tmp_path / "trained", config, progress=False)
    after = weights(tmp_path / "trained")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"backbone.embeddings.positions.weight"}
    rows = (before[changed.pop()] != after["backbone.embeddings.positions.weight"]).any(1)
    assert not rows[:2].any()  # no token stands there
    assert rows[2:60].all()


def test_positions_that_are_computed_cannot_be_trained_alone() -> None:
    with pytest.raises(InputError, match="`frozen` must be used with a model that has a table of positions"):
        train_positions_only(new("modernbert-base").model)


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
