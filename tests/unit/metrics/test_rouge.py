"""ROUGE and its stems against Google's rouge-score 0.1.2 and NLTK 3.10.4; their values are recorded here."""

import pytest

from longspan.errors import InputError
from longspan.metrics.porter import stem
from longspan.metrics.rouge import KINDS, google_stems, google_words, rouge

VOTE = "The committee approved the budgets.\nTwo members voted against it, citing costs."
PASSIVE = "Budgets were approved by the committee.\nCosts were cited by two of its members."
RISE = "Café prices rise 3.5 % in well-known towns."
ROSE = "In a known town the price of a café rose by 3.5 %."

# Summary, right summaries, and the four F1 without and with the stemmer.
CASES = [
    (VOTE, [PASSIVE], [0.538462, 0.083333, 0.307692, 0.307692], [0.615385, 0.083333, 0.307692, 0.307692]),
    (RISE, [ROSE], [0.454545, 0.1, 0.272727, 0.272727], [0.636364, 0.2, 0.272727, 0.272727]),
    (
        VOTE,
        [ROSE, PASSIVE],
        [0.538462, 0.083333, 0.307692, 0.307692],
        [0.615385, 0.083333, 0.307692, 0.307692],
    ),
    ("", [VOTE], [0, 0, 0, 0], [0, 0, 0, 0]),
    (
        "a b a b\nb a",
        ["b a b\na a b c"],
        [12 / 13, 8 / 11, 8 / 13, 12 / 13],
        [12 / 13, 8 / 11, 8 / 13, 12 / 13],
    ),
]


@pytest.mark.parametrize(("text", "right", "plain", "stemmed"), CASES)
def test_rouge_is_that_of_rouge_score(
    text: str, right: list[str], plain: list[float], stemmed: list[float]
) -> None:
    for tokenize, wanted in ((google_words, plain), (google_stems, stemmed)):
        found = rouge([text], [right], kinds=KINDS, tokenize=tokenize)
        assert [*found] == [*KINDS]
        assert [*found.values()] == pytest.approx(wanted, abs=1e-6)


def test_rouge_is_the_mean_over_texts() -> None:
    assert rouge(["a", "b"], ["a", "c"], kinds=["rouge1"]) == {"rouge1": 0.5}


def test_a_kind_that_there_is_not_and_no_right_summary_are_refused() -> None:
    with pytest.raises(
        InputError, match="`kinds` must be one of rouge1, rouge2, rougeL, rougeLsum, but is 'rougeW'"
    ):
        rouge(["a"], ["a"], kinds=["rougeW"])
    with pytest.raises(InputError, match=r"`expected\[0\]` must be a summary, or a list of at least one"):
        rouge(["a"], [[]])


STEMS = """
caresses caress, ponies poni, ties tie, cats cat, feed feed, agreed agre, plastered plaster, bled bled,
motoring motor, sing sing, conflated conflat, troubled troubl, sized size, hopping hop, falling fall,
hissing hiss, failing fail, filing file, happy happi, sky sky, enjoy enjoy, flies fli, died die, spied spi,
relational relat, conditional condit, rational ration, valency valenc, digitizer digit, conformably conform,
radically radic, differently differ, vilely vile, analogously analog, vietnamization vietnam, predication
predic, operator oper, feudalism feudal, decisiveness decis, hopefulness hope, callousness callous,
formality formal, sensitivity sensit, sensibility sensibl, hopefully hope, apologies apolog, triplicate
triplic, formative form, formalize formal, electricity electr, electrical electr, goodness good, revival
reviv, allowance allow, inference infer, adjustable adjust, defensible defens, irritant irrit, replacement
replac, adoption adopt, communism commun, activate activ, angularity angular, homologous homolog, effective
effect, bowdlerize bowdler, probate probat, rate rate, cease ceas, controlling control, roll roll, skies
sky, dying die, innings inning, proceed proceed, news news, syzygy syzygi, ion ion, ated ate, union union
"""


@pytest.mark.parametrize("case", STEMS.replace("\n", " ").strip().split(", "))
def test_a_stem_is_nltks(case: str) -> None:
    word, wanted = case.split()
    assert stem(word) == wanted
