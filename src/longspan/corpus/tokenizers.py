"""New tokenizers, learnt from texts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Backend

from longspan.errors import bad, one_of, whole
from longspan.text.families import ANGLES, BRACKETS
from longspan.text.tokenizer import Tokenizer

BASES = "ACGTN"
STRETCH = 512
"""Bases that are learnt from together: a text without spaces is one word, and long ones take long."""
LONGEST = 16
"""Bases of a token: else repeats become tokens of hundreds."""
_ANGLES = [
    *(AddedToken(name, special=True, normalized=False) for name in ("<s>", "<pad>", "</s>", "<unk>")),
    AddedToken("<mask>", special=True, normalized=False, lstrip=True),
]


@dataclass(frozen=True)
class Kind:
    """A kind of tokenizer: a new one, what trains it, what it is given, and the names of its tokens."""

    new: Callable[[], Backend]
    trainer: Callable[[int], trainers.Trainer]
    frame: tuple[str, str]
    names: dict[str, str]
    least: int
    "The smallest vocabulary: special tokens and the alphabet."
    words: Callable[[str], Iterable[str]] = lambda text: [text]


def _byte_bpe() -> Backend:
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return backend


def _wordpiece() -> Backend:
    backend = Backend(models.WordPiece(unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    return backend


def _dna() -> Backend:
    backend = Backend(models.BPE(unk_token="<unk>"))
    backend.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Replace("U", "T")])
    backend.decoder = decoders.Fuse()
    return backend


def _stretches(text: str) -> Iterator[str]:
    return (text[start : start + STRETCH] for start in range(0, len(text), STRETCH))


KINDS = {
    "bpe": Kind(
        new=_byte_bpe,
        trainer=lambda size: trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=2,
            show_progress=False,
            special_tokens=_ANGLES,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        ),
        frame=("<s>", "</s>"),
        names=ANGLES,
        least=len(_ANGLES) + 256,
    ),
    "wordpiece": Kind(
        new=_wordpiece,
        trainer=lambda size: trainers.WordPieceTrainer(
            vocab_size=size,
            min_frequency=2,
            show_progress=False,
            special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        ),
        frame=("[CLS]", "[SEP]"),
        names=BRACKETS,
        least=100,
    ),
    "dna": Kind(
        new=_dna,
        trainer=lambda size: trainers.BpeTrainer(
            vocab_size=size,
            min_frequency=2,
            show_progress=False,
            special_tokens=_ANGLES,
            initial_alphabet=list(BASES),
            limit_alphabet=len(BASES),
            max_token_length=LONGEST + 1,  # which is one too many for it
        ),
        frame=("<s>", "</s>"),
        names=ANGLES,
        least=len(_ANGLES) + len(BASES),
        words=_stretches,
    ),
}
"""BPE over bytes (Radford et al. 2019) or bases (Zaheer et al. 2020), WordPiece (Devlin et al. 2019)."""


def train_tokenizer(
    texts: Iterable[str], kind: str = "bpe", vocab_size: int = 32_000, *, limit: int | None = None
) -> Tokenizer:
    """A tokenizer of at most `vocab_size` tokens that suits some texts; `limit` is its model's longest input.

    >>> train_tokenizer(["to be or not to be " * 9], "bpe", 270).encode("to be").ids.tolist()[0]
    0
    """
    chosen = KINDS[one_of("kind", kind, KINDS)]
    whole("vocab_size", vocab_size, chosen.least, most=2**24)
    if isinstance(texts, str):
        raise bad("texts", "an iterable of texts", "one text", "Put it into a list.")
    backend, seen = chosen.new(), False

    def words() -> Iterator[str]:
        nonlocal seen
        for text in texts:
            seen = seen or bool(text.strip())
            yield from chosen.words(text)

    backend.train_from_iterator(words(), chosen.trainer(vocab_size))
    if not seen:
        raise bad("texts", "texts to learn from", "empty")
    first, last = ((name, int(backend.token_to_id(name) or 0)) for name in chosen.frame)
    if chosen.names is BRACKETS:
        backend.post_processor = processors.BertProcessing(last, first)
    else:
        backend.post_processor = processors.RobertaProcessing(
            last, first, trim_offsets=True, add_prefix_space=False
        )
    return Tokenizer.from_json(backend.to_str(), chosen.names, limit=limit)
