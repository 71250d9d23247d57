"""Examples cover every token of their documents once, between special tokens."""

import numpy as np
import pytest

from longspan.corpus.examples import PACKINGS, Examples, Frame
from longspan.corpus.store import Corpus
from longspan.errors import InputError
from unit.corpus.small import corpus, tokenizer


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus(tmp_path_factory.mktemp("corpus"), 7, length=23)


def examples(small: Corpus, length: int, packing: str) -> Examples:
    return Examples(small, np.array([5, 0, 3]), Frame.of(tokenizer()), length, packing)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("room", [1, 2, 7, 24, 25, 26, 75, 500])
def test_examples_cover_their_documents_once(small: Corpus, room: int, packing: str) -> None:
    found = examples(small, room + 2, packing)
    cut = [found.ids(number) for number in range(len(found))]
    assert [len(ids) for ids in cut] == found.lengths.tolist()
    assert all(ids[0] == tokenizer().bos and ids[-1] == tokenizer().eos for ids in cut)
    inner = np.concatenate([ids[1:-1] for ids in cut])
    documents = [small.document(number) for number in (5, 0, 3)]
    between = [np.array([tokenizer().eos])] if packing == "joined" else [np.zeros(0, int)]
    wanted = [part for document in documents for part in (document, *between)][:-1]
    np.testing.assert_array_equal(inner, np.concatenate(wanted))
    if packing == "joined":
        assert set(found.lengths[:-1].tolist()) <= {room + 2}
    else:
        assert len(found) == sum(-(-len(document) // room) for document in documents)


def test_the_frame_is_what_the_tokenizer_puts_around_a_text() -> None:
    words = tokenizer("wordpiece")
    assert Frame.of(words) == Frame((words.cls,), (words.sep,), words.sep)  # type: ignore[arg-type]


def test_examples_without_room_or_of_an_unknown_packing_are_refused(small: Corpus) -> None:
    with pytest.raises(InputError, match="`length` must be at least 3, but is 2"):
        examples(small, 2, "joined")
    with pytest.raises(InputError, match="`packing` must be one of documents, joined"):
        examples(small, 9, "sentences")
    with pytest.raises(InputError, match="documents for a tokenizer without a separator"):
        Examples(small, np.arange(3), Frame((), (), None), 9, "joined")
