"""Global tokens by index, mask, characters or rule: the same tokens, or an error that says why not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.pipeline.global_tokens import RULES, Globals, Rule
from longspan.text.encoding import Encoding
from longspan.text.tokenizer import Tokenizer
from unit.text import tiny


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder: Path = tmp_path_factory.mktemp("roberta")
    return Tokenizer.from_folder(tiny.write("roberta", folder))


@pytest.fixture(scope="module")
def pair(roberta: Tokenizer) -> Encoding:
    """<s> the Ġcat </s> </s> cat Ġthe Ġcat </s>"""
    encoding = roberta.encode("the cat", "cat the cat")
    assert roberta.tokens(encoding.ids) == [
        "<s>",
        "the",
        "Ġcat",
        "</s>",
        "</s>",
        "cat",
        "Ġthe",
        "Ġcat",
        "</s>",
    ]
    return encoding


EXPECTED = {
    "none": (),
    "first": (0,),
    "question": (0, 1, 2),
    "choice": (5, 6, 7, 8),
    "separators": (3, 4, 8),
    "all": tuple(range(9)),
}


@pytest.mark.parametrize("rule", RULES)
def test_rules_mark_what_they_say(rule: Any, pair: Encoding) -> None:
    assert Globals(rule=rule).resolve([pair]) == [EXPECTED[rule]]
    assert Globals.of(rule).resolve([pair, pair]) == [EXPECTED[rule]] * 2


@pytest.mark.parametrize("text", [("the cat", "cat the cat"), ("", "the"), ("the", ""), ("", "")])
def test_question_and_choice_are_those_of_transformers(text: tuple[str, str], roberta: Tokenizer) -> None:
    longformer = pytest.importorskip("transformers.models.longformer.modeling_longformer")
    torch = pytest.importorskip("torch")
    encoding = roberta.encode(*text)
    ids = torch.from_numpy(encoding.ids.copy())[None]
    rules: dict[Rule, bool] = {"question": True, "choice": False}
    for rule, before in rules.items():
        mask = longformer._compute_global_attention_mask(ids, roberta.sep, before_sep_token=before)
        assert Globals(rule=rule).resolve([encoding]) == [tuple(mask[0].nonzero()[:, 0].tolist())]


def test_a_choice_begins_with_its_first_token_in_every_family(tokenizer: Tokenizer) -> None:
    encoding = tokenizer.encode("the cat", "sat")
    (choice,) = Globals(rule="choice").resolve([encoding])
    assert encoding.source[list(choice)].tolist() == [1] * (len(choice) - 1) + [-1]


def test_one_list_serves_all_documents_or_each_has_its_own(pair: Encoding, roberta: Tokenizer) -> None:
    short = roberta.encode("the")
    assert Globals(indices=[2, 0, 2]).resolve([pair, short]) == [(0, 2), (0, 2)]
    assert Globals(indices=[[0, 5], []]).resolve([pair, short]) == [(0, 5), ()]
    assert Globals(indices=[]).resolve([pair, short]) == [(), ()]
    assert Globals(spans=[(0, 1)]).resolve([pair, short]) == [(1,), (1,)]
    assert Globals(spans=[[(4, 7)], [(0, 3)]]).resolve([pair, short]) == [(2,), (1,)]
    assert Globals(spans=[[], [(0, 3)]]).resolve([pair, short]) == [(), (1,)]


def test_masks_are_read_per_document(pair: Encoding) -> None:
    mask = np.isin(np.arange(9), [0, 6])
    assert Globals(mask=[mask]).resolve([pair]) == [(0, 6)]
    assert Globals(mask=[mask.tolist()]).resolve([pair]) == [(0, 6)]


def test_spans_mark_every_token_they_touch(pair: Encoding) -> None:
    assert Globals(spans=[(2, 5)]).resolve([pair]) == [(1, 2)]
    assert Globals(pair_spans=[(0, 4)]).resolve([pair]) == [(5,)]
    assert Globals(spans=[(0, 1)], pair_spans=[(0, 11)]).resolve([pair]) == [(1, 5, 6, 7)]


def test_a_function_is_a_rule(pair: Encoding) -> None:
    assert Globals.of(lambda encoding: range(0, len(encoding), 4)).resolve([pair]) == [(0, 4, 8)]


def test_several_ways_may_agree_but_not_contradict(pair: Encoding) -> None:
    assert Globals(indices=[0], rule="first").resolve([pair]) == [(0,)]
    with pytest.raises(
        InputError, match=r"`indices` and `rule` must agree, but mark \[1\] and \[0\] of document 0"
    ):
        Globals(indices=[1], rule="first").resolve([pair])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, 'must be told which tokens are global. Use rule="none"'),
        ({"rule": "fist"}, "`rule` must be one of none, first"),
        ({"indices": [9]}, "`indices` must be at most 8, but is 9"),
        ({"indices": [-1]}, "`indices` must be at least 0"),
        ({"indices": [[0], [1]]}, "one list for all, or one for each of the 1 documents"),
        ({"indices": [0, [1]]}, "one list for all, or one for each of the 1 documents"),
        ({"mask": [[True]]}, r"`mask\[0\]` must be boolean, one for each of the 9 tokens"),
        ({"mask": [[0] * 9]}, r"`mask\[0\]` must be boolean, one for each of the 9 tokens"),
        ({"mask": []}, "one mask for each of the 1 documents"),
        ({"spans": [(50, 60)]}, "`spans` must be stretches that hold a token"),
        ({"spans": [(3, 4)]}, "`spans` must be stretches that hold a token"),
        ({"spans": [(3, 3)]}, "start < end"),
        ({"pair_spans": [(-1, 3)]}, "`pair_spans` must be at least 0"),
        ({"spans": [[(0, 1, 2)]]}, "pairs"),
        ({"rule": lambda encoding: [99]}, "`indices` must be at most 8"),
    ],
)
def test_what_makes_no_sense_is_refused(spec: dict[str, Any], message: str, pair: Encoding) -> None:
    with pytest.raises(InputError, match=message):
        Globals(**spec).resolve([pair])


@pytest.mark.parametrize("rule", ["question", "choice"])
def test_a_single_text_has_no_question(rule: Any, roberta: Tokenizer) -> None:
    with pytest.raises(InputError, match="Encode a text and its pair"):
        Globals(rule=rule).resolve([roberta.encode("the cat")])
