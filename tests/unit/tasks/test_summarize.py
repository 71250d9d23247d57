"""A document goes in, a text about it comes out: one for each, however they are given and read."""

import logging
from pathlib import Path
from typing import Any

import pytest

import longspan
from longspan.errors import InputError
from longspan.generation.config import GenerationConfig
from longspan.generation.generate import generate
from longspan.pipeline.documents import prepare
from longspan.pipeline.options import Options
from longspan.reader import Reader
from longspan.tasks import style
from longspan.tasks.registry import TASKS
from longspan.tasks.summarize import Summary
from unit.tasks.tiny import CORPUS, LONG, reader, summariser, tokenizer, writer

SHORT: dict[str, Any] = {"max_new_tokens": 9, "num_beams": 2}


def chosen(asked: dict[str, Any], own: dict[str, Any], positions: int = 1024) -> GenerationConfig:
    return style.combined(asked, own, positions=positions, vocab=99)


def texts(found: list[Summary]) -> list[str]:
    return [one["summary_text"] for one in found]


def test_there_is_one_summary_for_each_document() -> None:
    one = summariser().summarize(CORPUS[0], **SHORT)
    several = summariser().summarize(CORPUS, **SHORT)
    assert [set(found) for found in (*one, *several)] == [{"summary_text", "n_tokens", "truncated"}] * 4
    assert one == several[:1]
    assert len(set(texts(several))) > 1
    sizes = [len(encoding) for encoding in tokenizer("longformer").encode_many(CORPUS)]
    assert [(found["n_tokens"], found["truncated"]) for found in several] == [(size, 0) for size in sizes]
    assert summariser().summarize([]) == []


def test_mates_and_their_order_change_nothing() -> None:
    alone = [found for text in CORPUS for found in summariser().summarize(text, **SHORT)]
    assert summariser(budget=4096).summarize(CORPUS, **SHORT) == alone
    assert summariser(deterministic=True).summarize(CORPUS, **SHORT) == alone
    assert summariser().summarize(CORPUS[::-1], **SHORT) == alone[::-1]


def test_what_is_written_counts_towards_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    together: list[int] = []

    def spied(model: Any, ids: Any, layout: Any, *rest: Any, **options: Any) -> Any:
        together.append(layout.documents)
        return generate(model, ids, layout, *rest, **options)

    monkeypatch.setattr("longspan.tasks.summarize.generate", spied)
    size = sum(len(encoding) for encoding in tokenizer("longformer").encode_many(CORPUS))
    summariser(budget=size + 3 * 2 * 9).summarize(CORPUS, **SHORT)
    summariser(budget=size + 3 * 2 * 9 - 1).summarize(CORPUS, **SHORT)
    assert together == [3, 2, 1]


def test_files_are_read_by_their_paths(tmp_path: Path) -> None:
    file = tmp_path / "thames.txt"
    file.write_text(CORPUS[0])
    expected = summariser().summarize(CORPUS[0], **SHORT)
    assert summariser().summarize(file, **SHORT) == expected
    assert summariser().summarize([file, CORPUS[1]], **SHORT)[:1] == expected
    file.write_text(" \n")
    with pytest.raises(InputError, match=r"thames.txt` must be a text with something in it"):
        summariser().summarize([CORPUS[1], file])


def test_a_text_that_is_the_name_of_a_file_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("thames.txt").write_text(CORPUS[0])
    with caplog.at_level(logging.WARNING, "longspan"):
        found = summariser().summarize(["thames.txt", CORPUS[0]], **SHORT)
    assert [record.getMessage() for record in caplog.records] == [
        "texts[0] is taken for a text, but 'thames.txt' is a file. Give a pathlib.Path to read it."
    ]
    assert found[0]["n_tokens"] < found[1]["n_tokens"]


def test_a_query_stands_before_its_document() -> None:
    behind = [f"Who?\n\n{CORPUS[0]}", f"Where?\n\n{CORPUS[1]}"]
    expected = summariser().summarize(behind, **SHORT)
    assert summariser().summarize(CORPUS[:2], query=["Who?", "Where?"], **SHORT) == expected
    assert summariser().summarize(CORPUS[0], query="Who?", **SHORT) == expected[:1]
    wrong: Any
    for wrong in ("", " ", ["Who?", ""], ["Who?", 5], ["Who?"], 5):
        with pytest.raises(InputError, match="`query` must be "):
            summariser().summarize(CORPUS[:2], query=wrong)


def test_a_document_that_is_too_long_is_an_error_or_cut() -> None:
    with pytest.raises(InputError, match=r"`texts` must be at most 64 tokens long.*\. Cut it \(overflow='tr"):
        summariser().summarize(LONG)
    (found,) = summariser(overflow="truncate").summarize(LONG, **SHORT)
    size = len(tokenizer("longformer").encode(LONG))
    assert (found["n_tokens"], found["truncated"]) == (64, size - 64)
    with pytest.raises(InputError, match=r"`overflow` must be 'error' or 'truncate', but is 'window'"):
        summariser(overflow="window").summarize(CORPUS[0])


@pytest.mark.parametrize("empty", ["", " \n", ["a", ""]])
def test_an_empty_document_is_an_error(empty: Any) -> None:
    with pytest.raises(InputError, match="must be a text with something in it, but is '"):
        summariser().summarize(empty)


@pytest.mark.parametrize("wrong", [None, 5, b"text", ["text", 5], {"text": "a"}])
def test_what_is_no_document_is_an_error(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"`texts.* must be a text"):
        summariser().summarize(wrong)


@pytest.mark.parametrize("beams", [1, 3])
def test_the_pieces_of_a_stream_make_up_the_summary(beams: int) -> None:
    pieces: list[str] = []
    (found,) = summariser().summarize(CORPUS[1], stream=pieces.append, num_beams=beams, max_new_tokens=20)
    assert "".join(pieces) == found["summary_text"]
    assert len(pieces) > 2
    assert [found] == summariser().summarize(CORPUS[1], num_beams=beams, max_new_tokens=20)


def test_a_stream_ends_when_it_is_told_to() -> None:
    pieces: list[str] = []

    def enough(piece: str) -> bool:
        pieces.append(piece)
        return len(pieces) < 3

    (found,) = summariser().summarize(CORPUS[1], stream=enough, num_beams=1, max_new_tokens=20)
    assert len(pieces) == 3
    assert "".join(pieces) == found["summary_text"]


def test_only_one_summary_is_streamed() -> None:
    options: Any
    for given, options in ((CORPUS, {}), (CORPUS[0], {"num_return_sequences": 2, "num_beams": 2})):
        with pytest.raises(InputError, match="`stream` must be None where several texts are written"):
            summariser().summarize(given, stream=print, **options)


def test_several_summaries_of_a_document_are_told_best_first() -> None:
    (found,) = summariser().summarize(CORPUS[0], num_return_sequences=3, max_new_tokens=9)
    assert len(found["summaries"]) == 3
    assert found["summaries"][0] == found["summary_text"]
    assert texts(summariser().summarize(CORPUS[0], max_new_tokens=9)) == found["summaries"][:1]


def test_draws_depend_on_the_seed_and_the_document_alone() -> None:
    drawn: dict[str, Any] = {"do_sample": True, "num_return_sequences": 2, "max_new_tokens": 9, "top_k": 50}
    together = summariser().summarize(CORPUS, seed=7, **drawn)
    assert together == [one for text in CORPUS for one in summariser().summarize(text, seed=7, **drawn)]
    assert together == summariser().summarize(CORPUS, seed=7, **drawn)
    assert together != summariser().summarize(CORPUS, seed=8, **drawn)
    with pytest.raises(InputError, match="`seed` must be at least 0"):
        summariser().summarize(CORPUS[0], seed=-1, **drawn)


def test_the_first_token_is_global_unless_others_are_chosen() -> None:
    encodings = [tokenizer("longformer").encode(CORPUS[0])]

    def marked(**options: Any) -> list[int]:
        (found,) = prepare(writer(), TASKS["summarize"], ["text"], encodings, Options().but(**options))
        return [int(row) for row in found.marked.nonzero()[0]]

    assert marked() == [0]
    assert marked(global_tokens=[0, 3]) == [0, 3]
    given = [
        texts(summariser().summarize(CORPUS, **SHORT, global_tokens=g)) for g in ("first", "none", "all")
    ]
    assert given[0] == texts(summariser().summarize(CORPUS, **SHORT))
    assert given[0] != given[1] != given[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nun_beams": 2}, "There is no option `nun_beams`. Did you mean num_beams"),
        ({"num_beam": 2}, "There is no option `num_beam`. Did you mean num_beams"),
        ({"num_beams": 0}, "`num_beams` must be at least 1, but is 0.$"),
        ({"max_length": 5, "max_new_tokens": 5}, "`max_length` and `max_new_tokens` must agree"),
        ({"suppress_tokens": [10**6]}, "`suppress_tokens` must be below [0-9]+, the number of words"),
        ({"temperature": 0.5}, "given with do_sample=True"),
        (
            {"max_new_tokens": 5, "min_new_tokens": 6},
            "`min_new_tokens` must be at most `max_new_tokens`, 5, but is 6",
        ),
        ({"max_new_tokens": 25}, "`max_new_tokens` must be at most 24, as many as there are positions"),
        ({"min_new_tokens": 25}, "`min_new_tokens` must be at most `max_new_tokens`, 24, but is 25"),
        ({"num_return_sequences": "two"}, "`num_return_sequences` must be a whole number"),
        ({"overflow": "cut"}, "`overflow` must be one of"),
    ],
)
def test_options_that_cannot_be_are_errors(options: dict[str, Any], message: str) -> None:
    for given in (CORPUS, ()):  # also where there is nothing to read yet
        with pytest.raises(InputError, match=message):
            summariser().summarize(given, **options)


def test_a_model_that_does_not_write_says_so() -> None:
    with pytest.raises(InputError, match=r"`task` must be summarize to call summarize\(\), but is 'encode'"):
        reader("longformer", "encode").summarize(CORPUS[0])


def test_a_summariser_gives_vectors_too() -> None:
    assert summariser().encode(CORPUS[0]).shape == (16,)


def test_a_bar_counts_documents(capsys: pytest.CaptureFixture[str]) -> None:
    summariser().summarize(CORPUS, progress=True, **SHORT)
    shown = capsys.readouterr().err
    assert "0/3" in shown
    assert "documents" in shown
    summariser().summarize(CORPUS, **SHORT)
    assert capsys.readouterr().err == ""


def test_a_model_without_a_say_writes_as_papers_do() -> None:
    own = style.own_style({"d_model": 16, "forced_eos_token_id": 2}, {"early_stopping": None})
    assert own == {
        "num_beams": 4,
        "length_penalty": 2.0,
        "no_repeat_ngram_size": 3,
        "early_stopping": True,
        "forced_eos_token_id": 2,
    }
    found = chosen({}, own)
    assert (found.num_beams, found.max_new_tokens, found.min_new_tokens, found.do_sample) == (
        4,
        256,
        0,
        False,
    )
    assert chosen({}, own, positions=100).max_new_tokens == 100


def test_the_more_special_file_is_followed() -> None:
    config: dict[str, Any] = {"num_beams": 2, "length_penalty": 0.5, "max_length": 21}
    config["task_specific_params"] = {"summarization": {"max_length": 61}, "translation": {"num_beams": 9}}
    assert style.own_style(config, {"num_beams": 3}) == {
        "num_beams": 3,
        "length_penalty": 0.5,
        "max_new_tokens": 60,
    }
    assert style.own_style({"task_specific_params": 7}, {}) == style.PAPERS


def test_the_models_own_way_gives_way() -> None:
    own = {"num_beams": 4, "max_new_tokens": 141, "min_new_tokens": 55, "top_k": 50, "do_sample": False}

    def given(**asked: Any) -> tuple[Any, ...]:
        found = chosen(asked, own)
        return (
            found.num_beams,
            found.max_new_tokens,
            found.min_new_tokens,
            found.num_return_sequences,
            found.top_k,
        )

    assert given() == (4, 141, 55, 1, None)
    assert given(max_new_tokens=20) == (4, 20, 20, 1, None)
    assert given(max_new_tokens=None) == (4, 141, 55, 1, None)
    assert given(min_new_tokens=200) == (4, 200, 200, 1, None)
    assert given(num_return_sequences=6) == (6, 141, 55, 6, None)
    assert given(do_sample=True, num_return_sequences=6) == (1, 141, 55, 6, 50)
    with pytest.raises(
        InputError, match=r"`num_return_sequences` must be at most `num_beams`, 2, but is 3\.$"
    ):
        given(num_return_sequences=3, num_beams=2)


def test_a_folder_that_contradicts_itself_is_named() -> None:
    own = {"num_beams": 4, "num_return_sequences": 5}
    with pytest.raises(
        InputError, match=r"`num_return_sequences` must be .*\. The model's own settings are {'num_beams': 4"
    ):
        chosen({}, own)
    assert chosen({"num_beams": 5}, own).num_return_sequences == 5


def test_a_folder_that_samples_does_so_as_transformers_does() -> None:
    own = style.own_style({"do_sample": True, "num_beams": 4}, {})
    assert (chosen({}, own).num_beams, chosen({}, own).top_k) == (4, 50)
    assert chosen({"do_sample": False}, own).top_k is None
    assert "top_k" not in style.own_style({"do_sample": True, "top_k": 0}, {})
    single = style.own_style({"do_sample": True, "num_beams": 1}, {})
    assert chosen({"num_return_sequences": 3}, single).num_beams == 1


def test_settings_that_have_no_effect_are_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"num_beams": 2, "stop_strings": ["."], "top_h": None}
    writing = Reader(writer(), tokenizer("longformer"), generation=settings)
    writing.config = {"num_beam_groups": 2, "task_specific_params": {"summarization": {"max_time": 9.0}}}
    writing.save(tmp_path)
    with caplog.at_level(logging.WARNING, "longspan"):
        longspan.load(tmp_path).summarize(CORPUS[0], max_new_tokens=2)
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path}: Longspan has no such generation settings, so they have no effect: max_time=9.0, "
        "num_beam_groups=2, stop_strings=['.']."
    ]
    caplog.clear()
    longspan.load(tmp_path, "encode")
    assert not caplog.records


def test_words_that_the_tokenizer_does_not_know_are_left_out() -> None:
    known = tokenizer("longformer")
    beyond = known.vocab_size
    assert beyond < writer().config.vocab_size
    pieces: list[str] = []
    options: dict[str, Any] = {
        "num_beams": 1,
        "max_new_tokens": 2,
        "forced_bos_token_id": beyond,
        "forced_eos_token_id": known.id_of("a"),
    }
    assert texts(summariser().summarize(CORPUS[0], **options, stream=pieces.append)) == ["a"]
    assert pieces == ["a"]


def test_what_is_saved_summarises_alike(tmp_path: Path) -> None:
    before = Reader(writer(), tokenizer("longformer"), generation={"num_beams": 3, "max_new_tokens": 11})
    before.save(tmp_path)
    after = longspan.load(tmp_path)
    assert after.task == "summarize"
    assert after.generation == before.generation
    assert (
        after.summarize(CORPUS)
        == before.summarize(CORPUS)
        == before.summarize(CORPUS, num_beams=3, max_new_tokens=11)
    )
