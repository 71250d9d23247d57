"""Ranking: the results and their shapes, and what is refused."""

import numpy as np
import pytest

from longspan.errors import InputError
from longspan.tasks.cross_encoder import activation_of
from unit.tasks.tiny import CORPUS, LONG, reader

QUERY = "the river"


def test_documents_come_best_first_and_say_what_was_read() -> None:
    ranker = reader("bert", "classify", labels=1)
    found = ranker.rank(QUERY, CORPUS, return_documents=True)
    assert sorted(one["corpus_id"] for one in found) == [0, 1, 2]
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)
    for one in found:
        assert one["text"] == CORPUS[one["corpus_id"]]
        assert one["truncated"] == 0
        assert one["windows"] == 1
    assert ranker.rank(QUERY, CORPUS, top_k=1) == [{k: v for k, v in found[0].items() if k != "text"}]
    assert ranker.rank(QUERY, []) == []
    assert ranker.predict([]).shape == (0,)


def test_scores_of_pairs_are_those_of_the_ranking() -> None:
    ranker = reader("longformer", "classify", labels=1)
    scores = ranker.predict([(QUERY, text) for text in CORPUS], show_progress_bar=False, batch_size=2)
    assert scores.dtype == np.float32
    for one in ranker.rank(QUERY, CORPUS):
        assert scores[one["corpus_id"]] == pytest.approx(one["score"], abs=1e-6)
    assert ranker.predict((QUERY, CORPUS[0])) == pytest.approx(float(scores[0]), abs=1e-6)
    assert ranker.predict([[QUERY, CORPUS[0]]]) == pytest.approx(scores[:1], abs=1e-6)


def test_what_to_do_with_a_long_document_can_be_chosen() -> None:
    ranker = reader("bert", "classify", labels=1)
    (whole,) = ranker.rank(QUERY, [LONG])
    assert whole["windows"] > 1
    assert whole["truncated"] == 0
    (cut,) = reader("bert", "classify", labels=1, overflow="truncate").rank(QUERY, [LONG])
    assert cut["windows"] == 1
    assert cut["n_tokens"] + cut["truncated"] == whole["n_tokens"]
    with pytest.raises(InputError, match=r"documents\[0\].*at most 64 tokens"):
        ranker.rank(QUERY, [LONG], overflow="error")
    with pytest.raises(InputError, match=r"documents\[0\].*Shorten the other part"):
        ranker.rank(LONG, CORPUS)


def test_models_without_a_score_are_refused() -> None:
    with pytest.raises(InputError, match=r"`task` must be classify.* to rank, but is 'encode'"):
        reader("bert", "encode").rank(QUERY, CORPUS)
    with pytest.raises(InputError, match="`labels` must be one or two to rank, but is 3"):
        reader("bert", "classify").check_ranks()
    reader("bert", "classify", labels=2).check_ranks()


@pytest.mark.parametrize(
    "stated", ["torch.nn.modules.activation.Softplus", "os.system", "torch.nn.x.Sigmoid", 3]
)
def test_no_other_activation_is_taken(stated: object) -> None:
    config = {"sentence_transformers": {"activation_fn": stated}}
    with pytest.raises(InputError, match=r"`activation_fn` must be torch\.nn\.Identity or"):
        activation_of(config)
    with pytest.raises(InputError, match="activation_fn"):
        reader("bert", "classify", labels=1, config=config).rank(QUERY, CORPUS)


def test_wrong_input_is_named() -> None:
    ranker = reader("bert", "classify", labels=1)
    with pytest.raises(InputError, match="`documents` must be a list of texts"):
        ranker.rank(QUERY, "one text")
    with pytest.raises(InputError, match=r"`documents\[1\]` must be a text"):
        ranker.rank(QUERY, ["a", 3])  # type: ignore[list-item]
    with pytest.raises(InputError, match="`query` must be a text"):
        ranker.rank(None, CORPUS)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`top_k` must be"):
        ranker.rank(QUERY, CORPUS, top_k=0)
    with pytest.raises(InputError, match=r"`pairs\[0\]` must be a query and a document"):
        ranker.predict(["lone"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="colour"):
        ranker.rank(QUERY, CORPUS, colour=1)  # type: ignore[call-arg]
