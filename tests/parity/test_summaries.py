"""Summaries are, word for word, what transformers generates and decodes, also by the settings of a folder."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import longspan
from parity.writers import peer
from unit.tasks.tiny import CORPUS, VOCABULARY, tokenizer

EVERY = pytest.mark.parametrize("variant", ["led", "bart", "pegasus, full"])


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def expected(theirs: Any, folder: Path, text: str, **options: Any) -> str:
    """What transformers writes about a text; LED's first token is global."""
    known = transformers.AutoTokenizer.from_pretrained(folder)
    ids = torch.tensor([known(text)["input_ids"]])
    more = {}
    if theirs.config.model_type == "led":
        more["global_attention_mask"] = torch.zeros_like(ids).index_fill(1, torch.tensor(0), 1)
    (found,) = theirs.generate(ids, attention_mask=torch.ones_like(ids), **more, **options)
    return str(known.decode(found, skip_special_tokens=True))


def saved(folder: Path, variant: str, **settings: Any) -> Any:
    theirs = peer(variant, vocab_size=VOCABULARY, spread=0.5)
    for name, value in settings.items():
        setattr(theirs.generation_config, name, value)
    theirs.save_pretrained(folder)
    tokenizer("longformer").save(folder)
    return theirs


@EVERY
def test_summaries_are_those_of_transformers(variant: str, tmp_path: Path) -> None:
    theirs = saved(tmp_path, variant)
    ours = longspan.load(tmp_path)
    options = {"num_beams": 3, "max_length": 16, "min_length": 5, "no_repeat_ngram_size": 2}
    styles: list[dict[str, Any]] = [options | {"length_penalty": 0.5}, {"max_new_tokens": 9, "num_beams": 1}]
    for style in styles:
        wanted = [expected(theirs, tmp_path, text, **style) for text in CORPUS]
        plain = {
            "early_stopping": False,
            "no_repeat_ngram_size": 0,
        }  # a folder without a say writes as papers do
        found = ours.summarize(CORPUS, **plain | style)
        assert [one["summary_text"] for one in found] == wanted


@EVERY
def test_the_settings_of_a_folder_are_followed(variant: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"num_beams": 2, "max_length": 14, "min_length": 6, "length_penalty": 2.0}
    settings |= {"early_stopping": True, "forced_eos_token_id": 2, "bad_words_ids": [[7], [8, 9]]}
    theirs = saved(tmp_path, variant, **settings)
    ours = longspan.load(tmp_path)
    wanted = [expected(theirs, tmp_path, text) for text in CORPUS]
    assert [one["summary_text"] for one in ours.summarize(CORPUS)] == wanted
    ours.save(tmp_path / "again")
    for again in (longspan.load(tmp_path / "again"), longspan.load(tmp_path / "again", "summarization")):
        assert [one["summary_text"] for one in again.summarize(CORPUS)] == wanted
    back = type(theirs).from_pretrained(tmp_path / "again")
    assert [expected(back, tmp_path / "again", text) for text in CORPUS] == wanted


@pytest.mark.parametrize("home", ["config.json", "generation_config.json"])
def test_settings_are_followed_wherever_they_stand(home: str, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"num_beams": 3, "max_length": 18, "min_length": 12}
    settings |= {"encoder_no_repeat_ngram_size": 2, "suppress_tokens": [7, 246], "renormalize_logits": True}
    settings |= {"begin_suppress_tokens": [5, 6], "repetition_penalty": 1.7}
    theirs = saved(tmp_path, "pegasus, full")
    (tmp_path / "generation_config.json").unlink()
    path = tmp_path / home
    stated = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(stated | settings))
    ours = longspan.load(tmp_path)
    wanted = [expected(theirs, tmp_path, text, **settings) for text in CORPUS]
    assert [one["summary_text"] for one in ours.summarize(CORPUS)] == wanted
    plain = {name: settings[name] for name in ("num_beams", "max_length", "min_length")}
    assert wanted != [expected(theirs, tmp_path, text, **plain) for text in CORPUS]
