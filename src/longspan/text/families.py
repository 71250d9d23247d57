"""Tokenizers from vocabulary files, each built as transformers builds it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from longspan.errors import InputError, bad, whole
from longspan.formats.sentencepiece import MOST_PIECES, Kind, SentencePieceModel, read_model
from longspan.text.guard import check_pieces

Names = Mapping[str, str]
Ids = Mapping[str, int]
Options = Mapping[str, Any]

BRACKETS = {"unk": "[UNK]", "sep": "[SEP]", "pad": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
ANGLES = {
    "bos": "<s>",
    "eos": "</s>",
    "unk": "<unk>",
    "sep": "</s>",
    "pad": "<pad>",
    "cls": "<s>",
    "mask": "<mask>",
}
PEGASUS = {"eos": "</s>", "unk": "<unk>", "pad": "<pad>", "mask": "<mask_2>"}


@dataclass(frozen=True)
class Family:
    """Vocabulary files and what they mean."""

    files: tuple[str, ...]
    classes: tuple[str, ...]
    "The tokenizer classes of transformers (without 'Fast') that read these files in this way."
    names: Names
    "Special tokens, unless the folder says otherwise."
    build: Callable[[Sequence[bytes], Names, Options], tuple[Tokenizer, list[AddedToken]]]
    "From the files' contents: a tokenizer without special tokens, and the tokens to be added to it."
    template: Callable[[Names, Ids, Options], Any]
    "The special tokens around a text and around a pair."
    models: tuple[str, ...] = ()
    "Model types that select this family where several read the same files."


def _bert(files: Sequence[bytes], names: Names, options: Options) -> tuple[Tokenizer, list[AddedToken]]:
    lines = _text(files[0], "vocab.txt").removesuffix("\n").split("\n")
    vocabulary = {line.rstrip(): index for index, line in enumerate(lines)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=names["unk"]))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=options.get("tokenize_chinese_chars", True),
        strip_accents=options.get("strip_accents"),
        lowercase=options.get("do_lower_case", True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer, []


def _roberta(files: Sequence[bytes], names: Names, options: Options) -> tuple[Tokenizer, list[AddedToken]]:
    vocabulary = _json_vocabulary(files[0])
    merges = [_merge(line) for line in _merge_lines(files[1])]
    model = models.BPE(
        vocab=vocabulary, merges=merges, continuing_subword_prefix="", end_of_word_suffix="", fuse_unk=False
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(options.get("add_prefix_space", False))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, []


def _bigbird(files: Sequence[bytes], names: Names, options: Options) -> tuple[Tokenizer, list[AddedToken]]:
    """The model's own normalization rules are not applied: transformers does not apply them either."""
    model = _model(files[0])
    pieces = [(piece.text, piece.score) for piece in model.pieces]
    unknown = (names["unk"], 0.0)
    unk_id = pieces.index(unknown) if unknown in pieces else 100
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=unk_id, byte_fallback=False))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), "▁")
    scheme = "always" if options.get("add_prefix_space", True) else "never"
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme, split=True)
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme=scheme, split=True)
    return tokenizer, _matched_first(model)


def _xlm_roberta(
    files: Sequence[bytes], names: Names, options: Options
) -> tuple[Tokenizer, list[AddedToken]]:
    """Four special tokens of fairseq replace the first three pieces; a mask comes last."""
    model = _model(files[0])
    first = [(names[role], 0.0) for role in ("bos", "pad", "eos", "unk")]
    pieces = [(piece.text, piece.score) for piece in model.pieces[3:]]
    vocabulary = [*first, *pieces, (names["mask"], 0.0)]
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    if model.charsmap:
        tokenizer.normalizer = normalizers.Precompiled(model.charsmap)
    scheme = "always" if options.get("add_prefix_space", True) else "never"
    words = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), words])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme=scheme)
    return tokenizer, _matched_first(model)


def _pegasus(
    files: Sequence[bytes], names: Names, options: Options, *, offset: int
) -> tuple[Tokenizer, list[AddedToken]]:
    """All pieces but the first two are shifted by `offset` ids, which only pretraining used.

    Masks keep the ids of pretraining: transformers 5.18.0 may swap the two, or add one where there is none.
    """
    model = _model(files[0])
    offset = whole("offset", options.get("offset", offset), 0, most=MOST_PIECES)
    masks = [_content(options.get("mask_token_sent", "<mask_1>")), names["mask"]] if offset else []
    spare = [*filter(None, masks), *(f"<unk_{i}>" for i in range(2, offset))]
    first = [(names["pad"], 0.0), (names["eos"], 0.0), *((name, -100.0) for name in spare)]
    vocabulary = [*first, *((piece.text, piece.score) for piece in model.pieces[2:])]
    unknown = [index for index, (text, _) in enumerate(vocabulary) if text == names["unk"]]
    if not unknown:
        raise bad("spiece.model", f"a vocabulary with {names['unk']}", "one without")
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=unknown[0], byte_fallback=False))
    lines = normalizers.Precompiled(model.charsmap) if model.charsmap else normalizers.Replace("\n", " ")
    tokenizer.normalizer = normalizers.Sequence([lines, normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    return tokenizer, [AddedToken(name, normalized=False, special=True) for name in spare]


def _model(data: bytes) -> SentencePieceModel:
    model = read_model(data)
    check_pieces(piece.text for piece in model.pieces)
    return model


def _matched_first(model: SentencePieceModel) -> list[AddedToken]:
    """Control and user-defined pieces, which are matched before anything else."""
    kinds = (Kind.CONTROL, Kind.USER)
    chosen = [piece for piece in model.pieces if piece.kind in kinds]
    return [AddedToken(p.text, normalized=False, special=p.kind == Kind.CONTROL) for p in chosen]


def _bert_template(names: Names, ids: Ids, options: Options) -> Any:
    """[CLS] A [SEP] B [SEP], of token types 0 and 1."""
    cls, sep = names["cls"], names["sep"]
    return processors.TemplateProcessing(
        single=f"{cls}:0 $A:0 {sep}:0",
        pair=f"{cls}:0 $A:0 {sep}:0 $B:1 {sep}:1",
        special_tokens=[(cls, ids["cls"]), (sep, ids["sep"])],
    )


def _roberta_template(names: Names, ids: Ids, options: Options) -> Any:
    """<s> A </s></s> B </s>, all of token type 0; offsets leave out the space before a word."""
    cls, sep = (names["cls"], ids["cls"]), (names["sep"], ids["sep"])
    prefix = options.get("add_prefix_space", False)
    return processors.RobertaProcessing(sep, cls, trim_offsets=True, add_prefix_space=prefix)


def _xlm_template(names: Names, ids: Ids, options: Options) -> Any:
    """<s> A </s></s> B </s>, all of token type 0."""
    bos, eos = names["bos"], names["eos"]
    return processors.TemplateProcessing(
        single=[bos, "$A", eos],
        pair=[bos, "$A", eos, eos, "$B", eos],
        special_tokens=[(bos, ids["bos"]), (eos, ids["eos"])],
    )


def _pegasus_template(names: Names, ids: Ids, options: Options) -> Any:
    """A B </s>, all of token type 0."""
    eos = names["eos"]
    return processors.TemplateProcessing(
        single=["$A", eos], pair=["$A", "$B", eos], special_tokens=[(eos, ids["eos"])]
    )


def _content(token: Any) -> str | None:
    """A token as tokenizer_config.json writes it: a string, an object, or nothing."""
    content = token.get("content") if isinstance(token, Mapping) else token
    if not isinstance(content, str | None):
        raise bad("mask_token_sent", "a string or null", token)
    return content


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"`{name}` must be UTF-8 text, but is not at byte {error.start}.") from None


def _json_vocabulary(data: bytes) -> dict[str, int]:
    try:
        vocabulary = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"`vocab.json` must be JSON, but is not: {error}.") from None
    if not isinstance(vocabulary, dict) or not all(type(index) is int for index in vocabulary.values()):
        raise bad("vocab.json", "an object of tokens and their whole numbers", type(vocabulary).__name__)
    return vocabulary


def _merge(line: str) -> tuple[str, str]:
    match line.split(" "):
        case [left, right]:
            return left, right
    raise bad("merges.txt", "lines of two pieces with a space between them", line)


def _merge_lines(data: bytes) -> list[str]:
    lines = _text(data, "merges.txt").replace("\r\n", "\n").split("\n")
    return [line for line in lines if line and not line.startswith("#version")]


_ROBERTA_CLASSES = ("RobertaTokenizer", "LongformerTokenizer", "BartTokenizer", "LEDTokenizer")
_BERT_CLASSES = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
_PIECES, _PEGASUS_CLASSES = ("spiece.model",), ("PegasusTokenizer",)
_BIGBIRD_NAMES = ANGLES | {"sep": "[SEP]", "cls": "[CLS]", "mask": "[MASK]"}
_MASKED = PEGASUS | {"mask": "[MASK]"}
_WITH_MASKS, _WITHOUT = partial(_pegasus, offset=103), partial(_pegasus, offset=0)

FAMILIES = (
    Family(("vocab.json", "merges.txt"), _ROBERTA_CLASSES, ANGLES, _roberta, _roberta_template),
    Family(("vocab.txt",), _BERT_CLASSES, BRACKETS, _bert, _bert_template),
    Family(_PIECES, ("BigBirdTokenizer",), _BIGBIRD_NAMES, _bigbird, _bert_template),
    Family(_PIECES, _PEGASUS_CLASSES, PEGASUS, _WITH_MASKS, _pegasus_template, ("pegasus",)),
    Family(_PIECES, _PEGASUS_CLASSES, _MASKED, _WITHOUT, _pegasus_template, ("bigbird_pegasus",)),
    Family(("sentencepiece.bpe.model",), ("XLMRobertaTokenizer",), ANGLES, _xlm_roberta, _xlm_template),
    Family(("vocab_bert_uncased_english.txt",), ("BertTokenizer",), BRACKETS, _bert, _bert_template),  # ETC's
)
