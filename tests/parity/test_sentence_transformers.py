"""Folders that Longspan saves are loaded by the real sentence-transformers: the same vectors, or refused."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longspan
from longspan.families.registry import family_of
from longspan.families.stitched.model import StitchedConfig
from longspan.lengthening.lengthen import lengthen
from longspan.reader import Reader
from longspan.tasks.registry import build
from parity.peers import OF_FAMILY, READ_ONLY, peer
from unit.families.tiny import configs, unsettle
from unit.tasks.tiny import CORPUS, VOCABULARY, reader, tokenizer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from sentence_transformers import SentenceTransformer

BRACKETS = ("Bert", "Electra", "DistilBert")
SIZES: dict[str, Any] = {
    "width": 24,
    "layers": 2,
    "heads": 2,
    "feed_forward": 40,
    "positions": 64,
    "block": 16,
}


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def same_vectors(folder: Path, **options: Any) -> None:
    """Both read a folder and give the same vectors."""
    ours = longspan.load(folder).encode(list(CORPUS), **options)
    theirs = SentenceTransformer(str(folder), device="cpu").encode(
        list(CORPUS),
        batch_size=1,  # padding beside a longer text changes what BigBird sees there
        **options,
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
    assert np.ptp(ours, axis=0).max() > 1e-2


@pytest.mark.parametrize("family", [*OF_FAMILY, *READ_ONLY])
def test_vectors_of_every_family_are_the_same(tmp_path: Path, family: str) -> None:
    peer(family, "Model", vocab_size=VOCABULARY).save_pretrained(tmp_path / "theirs")
    known = tokenizer("bert" if family in BRACKETS else "longformer")
    known.save(tmp_path / "theirs", token_types=family in BRACKETS)
    longspan.load(tmp_path / "theirs", "encode").save(tmp_path / "ours")
    same_vectors(tmp_path / "ours")


@pytest.mark.parametrize("pooling", ["mean", "first", "max"])
@pytest.mark.parametrize("normalize", [False, True])
def test_vectors_of_every_pooling_are_the_same(tmp_path: Path, pooling: str, normalize: bool) -> None:
    model = build(reader("bert", "encode").model.config, "encode", pooling=pooling, normalize=normalize)
    Reader(model.eval(), tokenizer("bert"), prompts={"query": "the river "}).save(tmp_path)
    same_vectors(tmp_path)
    same_vectors(tmp_path, prompt_name="query")


def test_a_lengthened_model_gives_the_same_vectors_and_reads_as_much(tmp_path: Path) -> None:
    reader("bert", "encode").save(tmp_path / "short")
    lengthen(tmp_path / "short", 160, out=tmp_path / "long", radius=8)
    same_vectors(tmp_path / "long")
    theirs = SentenceTransformer(str(tmp_path / "long"), device="cpu")
    text = " ".join(CORPUS)
    assert theirs.max_seq_length == longspan.load(tmp_path / "long").model.longest == 160
    np.testing.assert_allclose(
        theirs.encode(text), longspan.load(tmp_path / "long").encode(text), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("name", [*configs(), "stitched", "sif"])
def test_what_transformers_has_no_words_for_is_refused(tmp_path: Path, name: str) -> None:
    options: dict[str, Any] = {}
    if name in ("stitched", "sif"):
        config: Any = StitchedConfig(**SIZES, vocab_size=VOCABULARY, sif_weights=name == "sif")
        options = {"pooling": name} if name == "sif" else {}
    else:
        config = type(configs()[name])(**vars(configs()[name]) | {"vocab_size": VOCABULARY})
    model = build(config, "encode", **options).eval()
    unsettle(model)
    known = tokenizer("bert" if config.pad_id == 0 else "longformer")
    Reader(model, known).save(tmp_path)
    if family_of(config, {}).why_not(config, "Model") is None:
        same_vectors(tmp_path)
        return
    with pytest.raises((ValueError, KeyError), match="longspan-"):
        SentenceTransformer(str(tmp_path), device="cpu")


def test_a_pooling_that_only_longspan_has_is_refused_by_name(tmp_path: Path) -> None:
    """Even where transformers could load the rest."""
    from sentence_transformers.models import Pooling

    config = StitchedConfig(**SIZES, vocab_size=VOCABULARY, sif_weights=True)
    Reader(build(config, "encode", pooling="sif").eval(), tokenizer("bert")).save(tmp_path)
    with pytest.raises(ValueError, match="Invalid pooling mode: 'sif'"):
        Pooling.load(str(tmp_path), subfolder="1_Pooling")
    assert longspan.load(tmp_path).model.head.pooling == "sif"
