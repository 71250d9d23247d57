"""Tiny models and tokenizers, made on the spot, that read like real ones."""

from functools import cache
from typing import Any

import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from longspan.families.bert.model import BertConfig
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.etc.model import EtcConfig
from longspan.families.longformer.model import LongformerConfig
from longspan.families.modernbert.model import ModernBertConfig
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.families.task_model import TaskModel
from longspan.reader import Reader
from longspan.tasks.registry import build
from longspan.text.tokenizer import Tokenizer

FAMILIES = ("longformer", "bigbird", "bert", "etc", "modernbert")
VOCABULARY = 420
ANGLES = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BRACKETS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CORPUS = (
    "The river Thames flows through London, the capital of England.",
    "Anna lives in Rome and works for a small company near the old bridge.",
    "Long documents hold many words; each of them wants to be read as a whole.",
)
LONG = " ".join(CORPUS * 2)
"""More tokens than the tiny models have positions."""


@cache
def tokenizer(family: str) -> Tokenizer:
    """Byte-level BPE with RoBERTa's frame for Longformer, WordPiece with BERT's for the others."""
    return roberta() if family == "longformer" else bert()


def roberta() -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words = [word for word, _ in splitter.pre_tokenize_str(" ".join(CORPUS))][::2]
    merges = list(dict.fromkeys((word[:i], word[i]) for word in words for i in range(1, len(word))))
    tokens = [*ANGLES, *alphabet, *("".join(pair) for pair in merges)]
    backend = Backend(models.BPE({token: i for i, token in enumerate(dict.fromkeys(tokens))}, merges))
    backend.pre_tokenizer, backend.decoder = splitter, decoders.ByteLevel()
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    backend.add_special_tokens(ANGLES)
    roles = ("bos", "pad", "eos", "unk", "mask")
    return Tokenizer(backend, dict(zip(roles, ANGLES, strict=True)) | {"cls": "<s>", "sep": "</s>"})


def bert() -> Tokenizer:
    words = [word.strip(".,;").lower() for text in CORPUS for word in text.split()]
    letters = [chr(code) for code in range(ord("!"), ord("~") + 1)]
    tokens = [*BRACKETS, *letters, *(f"##{letter}" for letter in letters), *words[::2]]
    vocabulary = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    backend = Backend(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    backend.add_special_tokens(BRACKETS)
    return Tokenizer(backend, dict(zip(("pad", "unk", "cls", "sep", "mask"), BRACKETS, strict=True)))


def config(family: str, positions: int = 64) -> EncoderConfig:
    sizes: dict[str, Any] = {"width": 16, "layers": 2, "heads": 2, "feed_forward": 24, "init_std": 0.3}
    sizes |= {"vocab_size": VOCABULARY, "positions": positions}
    if family == "longformer":
        return LongformerConfig(**sizes, radius=4)
    if family == "bigbird":
        return BigBirdConfig(**sizes, block=4, random_blocks=1)
    if family == "etc":
        labels: dict[str, Any] = {"distance": 3, "relative": 10}
        return EtcConfig(**sizes, **labels, token_types=4, radius=4, absolute=True, units="blocks")
    return ModernBertConfig(**sizes, radius=4) if family == "modernbert" else BertConfig(**sizes)


@cache
def model(family: str, task: str, labels: int = 3, positions: int = 64) -> TaskModel:
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return build(config(family, positions), task, labels=labels).eval()


def reader(family: str, task: str, *, labels: int = 3, positions: int = 64, **options: Any) -> Reader:
    """Random weights, large enough that answers differ."""
    return Reader(model(family, task, labels, positions), tokenizer(family), **options)


@cache
def writer(positions: int = 64) -> TaskModel:
    """A model that writes up to 24 tokens about up to 64."""
    read = config("longformer", positions)
    encoder = LongformerConfig(**vars(read) | {"token_types": 0, "position_offset": 0, "init_std": 0.5})
    sizes: dict[str, Any] = {"layers": 2, "heads": 2, "feed_forward": 24, "positions": 24}
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return build(Seq2SeqConfig(encoder=encoder, **sizes), "summarize").eval()


def summariser(**options: Any) -> Reader:
    """A Reader that summarises."""
    return Reader(writer(), tokenizer("longformer"), **options)
