"""From text to answers: every verb on every family, saved and loaded, whole, cut and in windows."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import longspan
from longspan.errors import InputError
from longspan.pipeline.documents import prepare
from longspan.pipeline.options import Options
from longspan.pipeline.packing import pack
from longspan.reader import Reader
from longspan.tasks.registry import TASKS
from unit.tasks.tiny import CORPUS, FAMILIES, LONG, model, reader, tokenizer

TEXTS = [*CORPUS, "", "Ünïcode 文字 🙂 text", "a", CORPUS[0]]
every_family = pytest.mark.parametrize("family", FAMILIES)


def masked(family: str, text: str) -> str:
    return text.format(mask=tokenizer(family).names["mask"])


def asked(found: Reader, **options: Any) -> list[Any]:
    """What a reader says to a few inputs of its task."""
    questions: list[Any] = [{"question": "Who?", "context": text} for text in CORPUS]
    masks = [
        masked(found.model.backbone.__class__.__name__.lower(), text)
        for text in ("{mask} lives", "in {mask} now")
    ]
    verbs: dict[str, Any] = {
        "encode": lambda: found.encode(TEXTS, **options).tolist(),
        "classify": lambda: found.classify(TEXTS, **options),
        "tag": lambda: found.tag(TEXTS, **options),
        "answer": lambda: found.answer(questions, **options),
        "choose": lambda: found.choose(["Anna", "London"], [["yes", "no"], ["a", "b", "c"]], **options),
        "fill": lambda: found.fill(masks, **options),
    }
    answers: list[Any] = verbs[found.task]()
    return answers


def assert_close(found: Any, expected: Any) -> None:
    """Equal but for the last digits: weights elsewhere in memory may be added in another order."""
    if isinstance(expected, dict):
        assert set(found) == set(expected)
        found, expected = [found[key] for key in expected], list(expected.values())
    if isinstance(expected, list):
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other)
    else:
        assert found == (pytest.approx(expected, abs=1e-5) if isinstance(expected, float) else expected)


@every_family
@pytest.mark.parametrize("task", ["encode", "classify", "tag", "answer", "choose", "fill"])
def test_a_saved_reader_says_the_same_when_loaded(family: str, task: str, tmp_path: Path) -> None:
    before = reader(family, task)
    before.save(tmp_path)
    after = longspan.load(tmp_path)
    assert (after.task, after.labels) == (task, before.labels)
    assert_close(asked(after), asked(before))


@every_family
def test_one_text_gives_one_result_and_a_list_gives_a_list(family: str) -> None:
    encoder, classifier = reader(family, "encode"), reader(family, "classify")
    assert encoder.encode("a").shape == (16,)
    assert encoder.encode(["a"]).shape == (1, 16)
    assert encoder.encode([]).shape == (0, 16)
    assert encoder.encode([], convert_to_tensor=True).shape == (0, 16)
    assert classifier.classify("a") == classifier.classify(["a"])[0]
    assert classifier.classify([]) == []
    assert reader(family, "tag").tag([]) == []
    assert reader(family, "answer").answer([]) == []
    assert classifier.classify(text for text in ("a", "b")) == classifier.classify(("a", "b"))


def test_vectors_can_be_had_in_several_shapes() -> None:
    found = reader("longformer", "encode")
    text = CORPUS[0]
    vectors, tokens = found.encode(text), found.encode_tokens(text)
    everything = found.encode_with_details(text, tokens=True)
    assert set(everything) == {"sentence_embedding", "token_embeddings", "n_tokens", "truncated", "windows"}
    assert len(tokens) == everything["n_tokens"]
    np.testing.assert_array_equal(everything["sentence_embedding"], vectors)
    np.testing.assert_allclose(tokens.mean(axis=0), vectors, atol=1e-6)
    np.testing.assert_array_equal(found.encode(text, pooling="first"), tokens[0])
    np.testing.assert_array_equal(found.encode(text, pooling="max"), tokens.max(axis=0))
    unit = found.encode(text, normalize_embeddings=True, batch_size=32)
    np.testing.assert_allclose(unit, vectors / np.linalg.norm(vectors), atol=1e-6)
    assert isinstance(found.encode([text], convert_to_tensor=True), torch.Tensor)
    assert found.similarity(vectors, np.stack([vectors, -vectors])).tolist() == [pytest.approx([1.0, -1.0])]


def test_prompts_are_put_before_texts(tmp_path: Path) -> None:
    parts = model("bert", "encode"), tokenizer("bert")
    found = Reader(*parts, prompts={"query": "find: ", "passage": "read: "}, default_prompt_name="passage")
    found.save(tmp_path)
    for same in (found, longspan.load(tmp_path)):
        np.testing.assert_array_equal(same.encode_query("a"), found.encode("find: a", prompt=""))
        np.testing.assert_array_equal(same.encode_document("a"), found.encode("a", prompt="read: "))
        np.testing.assert_array_equal(same.encode("a"), found.encode("a", prompt_name="passage"))
    with pytest.raises(
        InputError, match=r"`prompt_name` must be one of query, passage, but is 'qeury'\. Did you"
    ):
        found.encode("a", prompt_name="qeury")


def in_windows(family: str, task: str) -> tuple[list[int], list[torch.Tensor]]:
    """For each window of LONG, read alone: the tokens it speaks for, and what the model says."""
    made, tokens = model(family, task), tokenizer(family).encode(LONG)
    (document,) = prepare(made, TASKS[task], ["text"], [tokens], Options(overflow="window"))
    counts, said = [], []
    for piece in document.pieces:
        marked = [np.flatnonzero(document.marked[piece.rows])]
        (batch,) = pack([tokens.ids[piece.rows]], marked=marked)
        counts.append(int(piece.owned.sum()))
        with torch.no_grad():
            said.append(made(batch.ids, batch.layout)[0])
    assert len(counts) > 1
    return counts, said


@every_family
def test_a_document_in_windows_is_the_mean_of_them_by_tokens(family: str) -> None:
    found = reader(family, "encode", overflow="window")
    counts, vectors = in_windows(family, "encode")
    result = found.encode_with_details(LONG)
    expected = sum(count * vector for count, vector in zip(counts, vectors, strict=True)) / sum(counts)
    np.testing.assert_allclose(result["sentence_embedding"], expected, atol=1e-5)
    assert (result["windows"], result["truncated"]) == (len(counts), 0)
    assert result["n_tokens"] == sum(counts) == len(found.encode_tokens(LONG))


@every_family
def test_probabilities_of_windows_are_averaged(family: str) -> None:
    found = reader(family, "classify", overflow="window").classify(LONG, top_k=None)
    counts, scores = in_windows(family, "classify")
    expected = torch.stack(scores).softmax(-1).mean(0)
    assert found.windows == len(counts)
    for rank, index in enumerate(expected.argsort(descending=True).tolist()):
        assert found[rank]["label"] == f"LABEL_{index}"
        assert found[rank]["score"] == pytest.approx(float(expected[index]), abs=1e-5)


@every_family
def test_an_answer_far_behind_is_found_and_cited(family: str) -> None:
    found = reader(family, "answer", overflow="window").answer("Who lives in Rome?", LONG, top_k=5)
    assert found.windows > 1
    assert len(found) == 5
    for one in found:
        assert one["answer"] == LONG[one["start"] : one["end"]] != ""


@every_family
def test_tags_of_windows_stand_in_order_and_once(family: str) -> None:
    found = reader(family, "tag", overflow="window").tag(LONG, ignore_labels=[])
    assert [one["index"] for one in found] == list(range(1, found.n_tokens - 1))
    starts = [one["start"] for one in found]
    assert starts == sorted(starts)


@every_family
def test_masks_are_filled_wherever_they_stand(family: str) -> None:
    found = reader(family, "fill", overflow="window")
    text = masked(family, f"{{mask}} {LONG} {{mask}}")
    (first, last), alone = found.fill(text, top_k=3), found.fill(masked(family, "Anna {mask}"), top_k=3)
    assert len(first) == len(last) == len(alone) == 3
    assert set(alone[0]) == {"score", "token", "token_str", "sequence"}
    with pytest.raises(InputError, match=r"`texts` must be read as far as its masks"):
        found.fill(masked(family, f"{LONG} {{mask}}"), overflow="truncate")


@every_family
def test_a_long_prompt_is_read_beside_every_choice(family: str) -> None:
    found = reader(family, "choose", overflow="window").choose(LONG, ["yes", "no", "perhaps"])
    assert found["windows"] > 1
    assert sum(found["scores"]) == pytest.approx(1.0)
    assert found["score"] == max(found["scores"]) == found["scores"][found["index"]]
    assert found["choice"] == ["yes", "no", "perhaps"][found["index"]]


@every_family
def test_what_is_cut_is_said(family: str, caplog: pytest.LogCaptureFixture) -> None:
    found = reader(family, "classify", overflow="truncate")
    with caplog.at_level(logging.WARNING, "longspan"):
        short, long = found.classify(["a", LONG])
    total = len(tokenizer(family).encode(LONG))
    assert (long["n_tokens"], long["truncated"], long["windows"]) == (64, total - 64, 1)
    assert short["truncated"] == 0
    assert caplog.messages == [
        f"1 of 2 documents were cut: {total - 64} of {total + 3} tokens were not read."
    ]


@every_family
def test_what_does_not_fit_is_an_error_by_default(family: str) -> None:
    with pytest.raises(InputError, match=r"`texts\[1\]` must be at most 64 tokens long, but is "):
        reader(family, "encode").encode(["a", LONG])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"`texts` must be a text or a list of texts, but is None"),
        (3, r"`texts` must be a text or a list of texts, but is 'int'\. Turn it into a text with str\(\)"),
        (b"abc", r"`texts` must be .* but is 'bytes'\. Decode the bytes first"),
        (["a", None], r"`texts\[1\]` must be a text \(str\), but is None"),
        (["a", 2.5], r"`texts\[1\]` must be a text \(str\), but is 'float'"),
        ([b"a"], r"`texts\[0\]` must be a text \(str\), but is 'bytes'"),
        ({"text": "a"}, r"`texts` must be a text or a list of texts, but is 'dict'"),
        ([["a", "b"]], r"`texts\[0\]` must be a text \(str\), but is 'list'"),
    ],
)
def test_what_is_no_text_is_an_error(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        reader("bert", "encode").encode(given)


@pytest.mark.parametrize("text", ["", " ", "\n\t", "</s>", "[SEP] [CLS]", "\ud800", "\0"])
@every_family
def test_odd_texts_are_read_as_they_are(family: str, text: str) -> None:
    for task in ("encode", "classify", "tag"):
        asked_for = getattr(reader(family, task, deterministic=True), task)
        both, alone = asked_for([text, "a"]), asked_for(text)
        assert len(both) == 2
        if task == "encode":
            assert np.isfinite(both).all()
            assert np.array_equal(both[0], alone)
        else:
            assert both == [alone, asked_for("a")]


@pytest.mark.parametrize("verb", ["classify", "tag", "answer", "choose", "fill"])
def test_a_verb_of_another_task_names_the_task(verb: str) -> None:
    found = reader("longformer", "encode")
    given = {"answer": ("Who?", "Anna."), "choose": ("Who?", ["Anna"]), "fill": ("<mask>",)}.get(verb, ("a",))
    with pytest.raises(
        InputError, match=f"`task` must be {verb} to call {verb}.., but is 'encode'. Load the model"
    ):
        getattr(found, verb)(*given)


def test_every_model_can_encode() -> None:
    assert reader("bert", "classify").encode(["a", "b"]).shape == (2, 16)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("", "text"), r"`question` must be a text with something in it, but is ''"),
        (("Who?", "  "), r"`context` must be a text with something in it, but is '  '"),
        (("Who?", None), r"`context` must be given with the question"),
        ((["Who?"], ["a", "b"]), r"`context` must be as many as the 1 questions, but is '2 texts'"),
        (([{"question": "Who?"}],), r"`question` must be a dict with 'question' and 'context', or a list"),
        ((["Who?", 3], ["a", "b"]), r"`question\[1\]` must be a text"),
    ],
)
def test_questions_without_sense_are_errors(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        reader("bert", "answer").answer(*given)


def test_questions_may_be_given_in_many_ways() -> None:
    found = reader("bert", "answer")
    expected = found.answer("Who?", CORPUS[0]), found.answer("Who?", CORPUS[1])
    assert found.answer({"question": "Who?", "context": CORPUS[0]}) == expected[0]
    assert found.answer(["Who?", "Who?"], CORPUS[:2]) == list(expected)
    assert found.answer("Who?", CORPUS[:2]) == list(expected)
    assert found.answer(["Who?", "What?"], CORPUS[0])[0] == expected[0]


def test_choices_without_sense_are_errors() -> None:
    found = reader("bert", "choose")
    for given, message in (
        (("a", []), r"`choices` must be a list of at least one text"),
        (("a", "yes"), r"`choices` must be a list of texts, but is 'str'"),
        ((["a"], [["b"], ["c"]]), r"`choices` must be one list for each of the 1 prompts"),
        (("a", ["b", 3]), r"`choices` must be a text \(str\), but is 'int'"),
    ):
        with pytest.raises(InputError, match=message):
            found.choose(*given)


def test_a_text_without_a_mask_is_an_error() -> None:
    with pytest.raises(
        InputError, match=r"`texts\[1\]` must be a text with <mask>, but is 'a'\. Write <mask> where"
    ):
        reader("longformer", "fill").fill(["<mask>", "a"])


def test_a_folder_without_a_tokenizer_is_an_error(tmp_path: Path) -> None:
    reader("bert", "encode").save(tmp_path)
    (tmp_path / "tokenizer.json").rename(tmp_path.with_name("elsewhere.json"))
    with pytest.raises(InputError, match=r"a folder with one of tokenizer\.json, .* or pass tokenizer="):
        longspan.load(tmp_path)
    assert longspan.load(tmp_path, tokenizer=tokenizer("bert")).encode("a").shape == (16,)


def test_loading_tells_of_misspelt_options_and_tasks_first(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean overflow"):
        longspan.load(tmp_path / "nowhere", overfow="window")  # type: ignore[call-arg]
    with pytest.raises(InputError, match="Did you mean tag"):
        longspan.load(tmp_path / "nowhere", "tagg")


class Other:
    """A tokenizer of another library."""

    name_or_path = "roberta-base"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"tokenizer": Other()},
            r"`tokenizer` must be longspan's Tokenizer, or a folder, but is 'Other'. Save",
        ),
        ({"tokenizer": 3}, r"`tokenizer` must be longspan's Tokenizer, or a folder, but is 'int'"),
        ({"device": "gpu"}, r"`device` must be a device that torch has here, such as \"cpu\", but is 'gpu'"),
        ({"device": 3.5}, r"`device` must be a device that torch has here"),
        (
            {"device": "cuda:99"},
            r"`device` must be a device that torch has here, .* but is 'cuda:99'. torch says",
        ),
        ({"task": "classify", "labels": 2.5}, r"`labels` must be a list of words, but is 2.5"),
        ({"task": "classify", "labels": [["a"]]}, r"`labels` must be a list of words, but is \[\['a'\]\]"),
    ],
)
def test_what_cannot_be_loaded_with_is_told_in_our_words(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    reader("bert", "encode").save(tmp_path)
    with pytest.raises(InputError, match=message):
        longspan.load(tmp_path, **options)


def test_a_model_without_prompts_says_so() -> None:
    found = reader("bert", "encode")
    with pytest.raises(
        InputError, match=r"`prompt_name` must be left out, as the model has no prompts, but is"
    ):
        found.encode("a", prompt_name="query")
    with pytest.raises(InputError, match=r"`prompt` must be a text \(str\), but is 'int'"):
        found.encode("a", prompt=3)  # type: ignore[call-overload]


def test_labels_of_a_loss_are_a_tensor() -> None:
    for name, outputs in (("classify", torch.zeros(2, 3)), ("tag", torch.zeros(2, 3))):
        with pytest.raises(
            InputError, match=r"`labels` must be a tensor, but is a 'list'. Make it one with torch"
        ):
            TASKS[name].loss(outputs, [0, 1])
    with pytest.raises(InputError, match="`right` must be a tensor"):
        TASKS["choose"].loss(torch.zeros(2, 1), [2], [0])


def test_a_new_head_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    reader("bert", "encode").save(tmp_path)
    found = longspan.load(tmp_path, "ner", labels=["O", "B-X"], overflow="truncate")
    assert found.task == "tag"
    assert found.labels == ("O", "B-X")
    assert found.options.overflow == "truncate"
    assert "train it before use" in caplog.text


def test_options_of_a_call_are_for_that_call() -> None:
    found = reader("longformer", "classify")
    assert found.classify(LONG, overflow="window")["windows"] > 1
    with pytest.raises(InputError, match="at most 64 tokens"):
        found.classify(LONG)


def test_global_tokens_change_what_is_read() -> None:
    found = reader("longformer", "classify")
    usual = found.classify(CORPUS[0])
    assert found.classify(CORPUS[0], global_tokens="first") == usual
    assert found.classify(CORPUS[0], global_tokens="all")["score"] != usual["score"]


def test_a_model_in_training_reads_without_dropout_and_goes_on_training() -> None:
    found = reader("bert", "classify")
    expected = found.classify("a")
    try:
        found.model.train()
        assert found.classify("a") == expected
        assert found.model.training
    finally:
        found.model.eval()


def test_labels_must_be_as_many_as_the_model_has() -> None:
    with pytest.raises(
        InputError, match=r"`labels` must be 3 names, as many as the model has, but is '2 names'"
    ):
        Reader(model("bert", "classify"), tokenizer("bert"), labels=["a", "b"])


def test_a_bar_counts_tokens(capsys: pytest.CaptureFixture[str]) -> None:
    found = reader("bert", "encode")
    found.encode(["a", "b"], show_progress_bar=True)
    assert "6.00/6.00" in capsys.readouterr().err
    found.encode(["a", "b"], budget=1)
    assert not capsys.readouterr().err


def test_a_reader_shows_what_it_is() -> None:
    shown = repr(reader("longformer", "answer"))
    assert shown == (
        "Reader('answer', Longformer of 2 layers, 16 wide, up to 64 tokens, float32 on cpu, overflow='error')"
    )


def test_bfloat16_gives_float32_vectors(tmp_path: Path) -> None:
    reader("longformer", "encode").save(tmp_path)
    found = longspan.load(tmp_path, dtype="bfloat16")
    vectors = found.encode(CORPUS)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, reader("longformer", "encode").encode(CORPUS), atol=0.1)
