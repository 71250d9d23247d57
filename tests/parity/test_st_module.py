"""longspan.st.Transformer is a module of sentence-transformers: read, train, evaluate, save and load."""

import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import longspan
from longspan.errors import InputError
from longspan.reader import Reader
from unit.tasks.tiny import CORPUS, LONG, config, reader, tokenizer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    from longspan import st

TEXTS = [*CORPUS, "a", "Rome"]
FAMILIES = ("longformer", "bigbird", "bert", "etc")


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


def fresh(family: str) -> Reader:
    """A Reader whose weights no other test has."""
    from longspan.tasks.registry import build

    with torch.random.fork_rng():
        torch.manual_seed(7)
        return Reader(build(config(family), "encode").eval(), tokenizer(family))


def whole(found: Reader, *more: Any, **options: Any) -> Any:
    """The model of sentence-transformers around a Reader's."""
    first = st.Transformer(found, **options)
    return SentenceTransformer(modules=[first, Pooling(first.get_embedding_dimension()), *more], device="cpu")


@pytest.mark.parametrize("family", FAMILIES)
def test_vectors_are_those_of_the_reader_whatever_stands_beside(family: str) -> None:
    found = reader(family, "encode")
    for size in (1, 2, 32):
        vectors = whole(found).encode(TEXTS, batch_size=size)
        np.testing.assert_allclose(vectors, found.encode(TEXTS), rtol=0, atol=1e-5)


def test_vectors_are_those_of_transformers(tmp_path: Path) -> None:
    found = fresh("bert")
    found.save(tmp_path)
    theirs = SentenceTransformer(str(tmp_path), device="cpu")
    np.testing.assert_allclose(whole(found).encode(TEXTS), theirs.encode(TEXTS), rtol=0, atol=1e-5)
    features, others = (each.tokenize(TEXTS) for each in (whole(found), theirs))
    for key in ("input_ids", "attention_mask"):
        assert torch.equal(features[key], others[key])
    ours, out = whole(found)[0](features), theirs[0](others)
    mask = features["attention_mask"].bool()
    torch.testing.assert_close(
        ours["token_embeddings"][mask], out["token_embeddings"][mask], rtol=0, atol=1e-5
    )
    assert not ours["token_embeddings"][~mask].any()


def test_gradients_are_those_of_transformers(tmp_path: Path) -> None:
    found = fresh("bert")
    found.save(tmp_path)
    theirs, ours = SentenceTransformer(str(tmp_path), device="cpu").eval(), whole(found).eval()
    sums = []
    for each in (ours, theirs):
        each(each.tokenize(TEXTS))["sentence_embedding"].square().sum().backward()
        table = next(weight for weight in each.parameters() if weight.shape == (420, 16))
        sums.append(table.grad)
    torch.testing.assert_close(sums[0], sums[1], rtol=0, atol=1e-5)
    assert sums[0].abs().max() > 1e-3


def test_token_types_and_global_tokens_are_read(tmp_path: Path) -> None:
    pairs = [("Who?", CORPUS[0]), ("Where is Anna?", CORPUS[1])]
    features = whole(fresh("bert")).preprocess(pairs)
    assert features["token_type_ids"].max() == 1
    found = reader("longformer", "encode", global_tokens="first")
    vectors = whole(found).encode(TEXTS, batch_size=2)
    np.testing.assert_allclose(vectors, found.encode(TEXTS), rtol=0, atol=1e-5)
    plain = reader("longformer", "encode").encode(TEXTS)
    assert np.abs(vectors - plain).max() > 1e-3


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_folders_come_back(family: str, tmp_path: Path) -> None:
    found = fresh(family)
    made = whole(found, Normalize())
    made.max_seq_length = 50
    made.prompts = {"query": "find "}
    made.save(str(tmp_path), create_model_card=False)
    expected = made.encode(TEXTS)
    for again in (
        SentenceTransformer(str(tmp_path), device="cpu", trust_remote_code=True),
        st.load(tmp_path),
        longspan.load(tmp_path),
    ):
        np.testing.assert_allclose(again.encode(TEXTS), expected, rtol=0, atol=1e-5)
    assert st.load(tmp_path).max_seq_length == 50
    assert longspan.load(tmp_path).prompts["query"] == "find "


def test_folders_of_readers_are_loaded_too(tmp_path: Path) -> None:
    found = fresh("longformer")
    found.save(tmp_path)
    np.testing.assert_allclose(st.load(tmp_path).encode(TEXTS), found.encode(TEXTS), rtol=0, atol=1e-5)
    with pytest.raises(InputError, match=r"`model` must be a folder with a modules\.json, but is .*Put"):
        st.load(tmp_path / "1_Pooling")


def test_nothing_is_cut_unsaid(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(InputError, match=r"`inputs\[0\]` must be at most 64 tokens long"):
        whole(fresh("bert")).encode(["a", LONG])
    found = reader("bert", "encode", overflow="truncate")
    with caplog.at_level(logging.WARNING, "longspan"):
        vectors = whole(found).encode([LONG])
    assert "1 of 1 documents were cut" in caplog.text
    np.testing.assert_allclose(vectors, found.encode([LONG]), rtol=0, atol=1e-5)
    with pytest.raises(InputError, match=r"`overflow` must be 'error' or 'truncate' in a module"):
        whole(reader("bert", "encode", overflow="window"))
    with pytest.raises(InputError, match=r"`max_seq_length` must be at most 64, but is 100"):
        whole(fresh("bert")).max_seq_length = 100


def measured(made: Any, loss: Any, pairs: list[list[str]]) -> float:
    """The loss without dropout."""
    made.eval()
    with torch.no_grad():
        return float(loss([made.preprocess(each) for each in pairs], labels=None))


def test_a_plain_loop_and_an_evaluator() -> None:
    made = whole(fresh("longformer"))
    loss = losses.MultipleNegativesRankingLoss(made)
    optimizer = torch.optim.Adam(made.parameters(), 3e-3)
    pairs = [TEXTS[:3], ["London", "Anna of Rome", "whole documents"]]
    before = measured(made, loss, pairs)
    made.train()
    torch.manual_seed(0)
    for _ in range(60):
        loss([made.preprocess(each) for each in pairs], labels=None).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert measured(made, loss, pairs) < 0.5 * before
    evaluator = EmbeddingSimilarityEvaluator(*pairs, [0.9, 0.5, 0.1], name="pairs")
    assert "pairs_spearman_cosine" in made.evaluate(evaluator)


def test_their_trainer_lowers_the_loss(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="the trainer needs datasets")
    pytest.importorskip("accelerate", reason="the trainer needs accelerate")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

        made = whole(fresh("longformer"))
        loss = losses.MultipleNegativesRankingLoss(made)
        pairs = [TEXTS[:3], ["London", "Anna of Rome", "whole documents"]]
        before = measured(made, loss, pairs)
        arguments = SentenceTransformerTrainingArguments(
            output_dir=str(tmp_path),
            max_steps=60,
            per_device_train_batch_size=3,
            learning_rate=3e-3,
            lr_scheduler_type="constant",
            save_steps=60,
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        trainer = SentenceTransformerTrainer(
            model=made,
            args=arguments,
            train_dataset=datasets.Dataset.from_dict(dict(zip(("anchor", "positive"), pairs, strict=True))),
            loss=loss,
        )
        trainer.train()
    assert measured(made, loss, pairs) < 0.5 * before
    np.testing.assert_allclose(
        longspan.load(tmp_path / "checkpoint-60").encode(TEXTS), made.encode(TEXTS), rtol=0, atol=1e-5
    )
