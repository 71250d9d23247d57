"""A Reader's encode takes what sentence-transformers' takes, and gives the same."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import longspan
from longspan.errors import InputError
from longspan.reader import Reader
from longspan.tasks.registry import build
from unit.tasks.tiny import CORPUS, LONG, reader, tokenizer

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what it imports
    from sentence_transformers import SentenceTransformer, SimilarityFunction
    from sentence_transformers.util import quantize_embeddings

TEXTS = [*CORPUS, "a", "Rome"]


@pytest.fixture(autouse=True)
def engine() -> None:
    """Nothing here depends on the kernel."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that normalizes its vectors and has prompts."""
    made = build(reader("bert", "encode").model.config, "encode", pooling="mean", normalize=True)
    place = tmp_path_factory.mktemp("st")
    prompts = {"query": "the river ", "document": "London: ", "aside": "( "}
    Reader(made.eval(), tokenizer("bert"), prompts=prompts).save(place)
    return place


@pytest.fixture(scope="module")
def ours(folder: Path) -> Reader:
    return longspan.load(folder)


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    return SentenceTransformer(str(folder), device="cpu")


def same(found: Any, expected: Any) -> None:
    """The same kind of value, of the same shape and type, with nearly the same numbers."""
    assert type(found) is type(expected)
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
    elif isinstance(expected, dict):
        assert set(found) <= set(expected)
        for key, value in found.items():
            same(value, expected[key][: len(value)])
    else:
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=0, atol=1e-5)


@pytest.mark.parametrize("texts", ["Anna lives in Rome", TEXTS, TEXTS[:1], tuple(TEXTS), np.array(TEXTS)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"convert_to_tensor": True},
        {"convert_to_numpy": False},
        {"convert_to_numpy": False, "convert_to_tensor": True},
        {"normalize_embeddings": False, "batch_size": 2, "show_progress_bar": False},
        {"normalize_embeddings": True},
        {"truncate_dim": 5},
        {"truncate_dim": 5, "normalize_embeddings": True},
        {"prompt": "the "},
        {"prompt_name": "query"},
        {"device": "cpu"},
        {"device": torch.device("cpu"), "chunk_size": None, "pool": None},
        {"output_value": "token_embeddings"},
        {"output_value": None},
        {"precision": "binary"},
        {"precision": "ubinary", "convert_to_tensor": True},
        {"precision": None},
    ],
    ids=str,
)
def test_every_option_gives_the_same(ours: Reader, theirs: Any, texts: Any, options: dict[str, Any]) -> None:
    same(ours.encode(texts, **options), theirs.encode(texts, **options))


@pytest.mark.parametrize("verb", ["encode", "encode_query", "encode_document"])
@pytest.mark.parametrize("name", ["inputs", "sentences"])
def test_every_verb_knows_its_prompt_and_the_names_of_its_texts(
    ours: Reader, theirs: Any, verb: str, name: str
) -> None:
    found = getattr(ours, verb)(prompt_name=None, prompt=None, **{name: TEXTS})
    same(found, getattr(theirs, verb)(TEXTS, prompt_name=None, prompt=None))
    same(getattr(ours, verb)(TEXTS, prompt="x "), getattr(theirs, verb)(TEXTS, prompt="x "))


def test_a_passage_prompt_is_for_documents_even_where_they_prefer_an_empty_one(tmp_path: Path) -> None:
    """sentence-transformers fills in an empty prompt "document", which then comes before "passage"."""
    made = reader("bert", "encode")
    named = {"prompts": {"passage": "read: ", "other": "x "}, "default_prompt_name": "other"}
    Reader(made.model, made.tokenizer, **named).save(tmp_path)  # type: ignore[arg-type]
    ours, theirs = longspan.load(tmp_path), SentenceTransformer(str(tmp_path), device="cpu")
    same(ours.encode_document(TEXTS), theirs.encode(TEXTS, prompt_name="passage"))
    same(ours.encode_query(TEXTS), theirs.encode_query(TEXTS))
    same(ours.encode_query(TEXTS), ours.encode(TEXTS, prompt=""))
    same(ours.encode(TEXTS), theirs.encode(TEXTS))


@pytest.mark.parametrize("precision", ["int8", "uint8", "binary", "ubinary", "float32"])
def test_quantized_vectors_are_theirs_to_the_last_bit(ours: Reader, precision: Any) -> None:
    found = ours.encode(TEXTS, precision=precision)
    expected = quantize_embeddings(ours.encode(TEXTS), precision)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    assert ours.encode([], precision=precision).dtype == expected.dtype


def test_a_single_vector_has_no_range(ours: Reader, theirs: Any) -> None:
    for texts in ("a", ["a"]):
        with pytest.raises(ValueError, match="single embedding"):
            theirs.encode(texts, precision="int8")
        with pytest.raises(InputError, match=r"`precision` must be .* for a single vector, but is 'int8'"):
            ours.encode(texts, precision="int8")


def test_a_constant_dimension_is_quantized_to_one_value() -> None:
    from longspan.tasks.precision import quantized

    vectors = np.array([[1, 2], [1, 3], [1, 5]], np.float32)
    for precision in ("int8", "uint8"):
        np.testing.assert_array_equal(quantized(vectors, precision), quantize_embeddings(vectors, precision))


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_similarities_are_theirs(ours: Reader, theirs: Any, name: str) -> None:
    a, b = ours.encode(TEXTS), ours.encode(TEXTS[::-1], truncate_dim=None)
    try:
        ours.similarity_fn_name = theirs.similarity_fn_name = name
        assert ours.similarity_fn_name == name
        for left, right in (
            (a, b),
            (a[0], b),
            (torch.from_numpy(a), torch.from_numpy(b)),
            (list(a), list(b)),
        ):
            same(ours.similarity(left, right), theirs.similarity(left, right))
        same(ours.similarity_pairwise(a, b), theirs.similarity_pairwise(a, b))
        tensors = list(torch.from_numpy(a))
        same(ours.similarity(tensors, tensors), theirs.similarity(tensors, tensors))
    finally:
        ours.similarity_fn_name = theirs.similarity_fn_name = "cosine"
    ours.similarity_fn_name = SimilarityFunction.COSINE
    with pytest.raises(
        InputError, match=r"`similarity_fn_name` must be one of cosine, dot, .* Did you mean dot"
    ):
        ours.similarity_fn_name = "dott"
    with pytest.raises(InputError, match=r"`b` must be as many vectors as `a`, 5, but is 4"):
        ours.similarity_pairwise(a, b[:4])
    with pytest.raises(InputError, match=r"`b` must be vectors of the size of those of `a`, 16, but is 3"):
        ours.similarity(a, b[:, :3])


def test_the_facts_are_theirs(ours: Reader, theirs: Any) -> None:
    assert ours.get_sentence_embedding_dimension() == ours.get_embedding_dimension() == 16
    assert theirs.get_embedding_dimension() == 16
    assert ours.max_seq_length == ours.get_max_seq_length() == theirs.max_seq_length == 64
    assert ours.device == theirs.device == torch.device("cpu")
    assert ours.to("cpu") is ours
    found, expected = ours.tokenize(TEXTS), theirs.tokenize(TEXTS)
    assert set(found) <= set(expected)
    for key, value in found.items():
        assert torch.equal(value, expected[key]), key


def test_to_set_the_limit_cuts_nothing_in_silence(folder: Path) -> None:
    ours, theirs = longspan.load(folder), SentenceTransformer(str(folder), device="cpu")
    ours.max_seq_length = theirs.max_seq_length = 9
    assert ours.max_seq_length == 9
    with pytest.raises(
        InputError, match=r"`texts` must be at most 9 tokens long, but is .*overflow='truncate'"
    ):
        ours.encode(LONG)
    same(ours.encode(LONG, overflow="truncate"), theirs.encode(LONG))
    ours.max_seq_length = None
    assert ours.max_seq_length == 64
    with pytest.raises(InputError, match=r"`max_seq_length` must be at most 64, but is 65"):
        ours.max_seq_length = 65


def test_settings_go_from_folder_to_folder(folder: Path, tmp_path: Path) -> None:
    theirs = SentenceTransformer(str(folder), device="cpu", truncate_dim=7, similarity_fn_name="dot")
    theirs.save(str(tmp_path / "theirs"), create_model_card=False)
    ours = longspan.load(tmp_path / "theirs")
    assert (ours.similarity_fn_name, ours.truncate_dim, ours.get_embedding_dimension()) == ("dot", 7, 7)
    assert ours.encode([]).shape == (0, 7)
    ours.save(tmp_path / "ours")
    again = SentenceTransformer(str(tmp_path / "ours"), device="cpu")
    assert (again.similarity_fn_name, again.truncate_dim) == ("dot", 7)
    same(ours.encode(TEXTS), again.encode(TEXTS))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "int4"}, r"`precision` must be one of float32, int8, .*, but is 'int4'"),
        ({"output_value": "tokens"}, r"`output_value` must be one of sentence_embedding, token_embeddings"),
        ({"truncate_dim": 17}, r"`truncate_dim` must be at most 16, but is 17"),
        ({"truncate_dim": 0}, r"`truncate_dim` must be at least 1, but is 0"),
        ({"batch_size": 0}, r"`batch_size` must be at least 1, but is 0"),
        ({"device": "cudda"}, r"`device` must be a device that torch has here"),
        ({"device": []}, r"`target_devices` must be at least one device"),
        ({"convert_to_array": True}, r"There is no option `convert_to_array`"),
        (
            {"precision": "int8", "output_value": "token_embeddings"},
            r"`precision` must be 'float32' for output_value='token_embeddings', but is 'int8'",
        ),
        ({"sentences": ["b"]}, r"`texts` must be given once, but is '2 times'"),
    ],
)
def test_what_cannot_be_is_an_error(ours: Reader, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        ours.encode(["a", "b"], **options)
