"""Text to token ids and back, with the offsets of every token."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import tokenizers

from longspan.errors import InputError, bad, whole
from longspan.formats.atomic import as_json, replaced_files
from longspan.text.encoding import Encoding, Input, encode
from longspan.text.folder import ROLES, conventional_names, parse, read_folder
from longspan.text.guard import check_ids, guarded
from longspan.text.pieces import places

FILE = "tokenizer.json"
"""Without it nobody reads the other files."""
FILES = (FILE, "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")
SURROGATE = re.compile("[\ud800-\udfff]")
ADDITIVE = ("NoneType", "ByteLevel", "Metaspace", "WordPiece")


def is_tokenizer_file(name: str) -> bool:
    """Whether a file of that name is written, or made meaningless, by saving a tokenizer."""
    return name in FILES


class Tokenizer:
    """A tokenizer that never cuts and never pads.

    Special tokens written in the text are plain text, unless `special_in_text` is true (as in Hugging Face).
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        names: Mapping[str, str] | None = None,
        *,
        limit: int | None = None,
        special_in_text: bool = False,
    ) -> None:
        self._backend = backend
        self.names = dict(conventional_names(backend) if names is None else names)
        self.limit = limit
        self.special_in_text = special_in_text
        backend.no_truncation()
        backend.no_padding()
        backend.encode_special_tokens = not special_in_text
        ids = {role: backend.token_to_id(self.names[role]) if role in self.names else None for role in ROLES}
        self.bos, self.eos, self.unk = ids["bos"], ids["eos"], ids["unk"]
        self.sep, self.pad, self.cls, self.mask = ids["sep"], ids["pad"], ids["cls"], ids["mask"]
        added = backend.get_added_tokens_decoder()
        marked = {index for index, token in added.items() if token.special}
        self.special_ids = frozenset(marked | {index for index in ids.values() if index is not None})
        self.vocab_size: int = 1 + max(backend.get_vocab().values())

    @classmethod
    def from_folder(
        cls, path: str | Path, *, vocab_size: int | None = None, special_in_text: bool = False
    ) -> Self:
        """The tokenizer of a model folder; ids from `vocab_size` on are an error, unless that is None."""
        source = read_folder(path, vocab_size)
        return cls(source.backend, source.names, limit=source.limit, special_in_text=special_in_text)

    @classmethod
    def from_json(
        cls,
        text: str,
        names: Mapping[str, str] | None = None,
        *,
        limit: int | None = None,
        special_in_text: bool = False,
    ) -> Self:
        """The tokenizer of a tokenizer.json's text; `names` are its special tokens by role, such as "cls"."""
        backend = parse(text)
        check_ids(backend, None)
        return cls(backend, names, limit=limit, special_in_text=special_in_text)

    def to_json(self) -> str:
        """The text of a tokenizer.json."""
        return str(self._backend.to_str())

    def save(self, folder: str | Path, *, token_types: bool = False) -> None:
        """Write tokenizer.json, and a tokenizer_config.json by which transformers reads it unchanged.

        `token_types` says whether the model takes token types. Both files are replaced, or none.
        """
        with replaced_files(Path(folder), owns=is_tokenizer_file, last=FILE) as fresh:
            self.write(fresh, token_types=token_types)

    def write(self, folder: Path, *, token_types: bool = False) -> None:
        """The same into a new folder, which may be left half written."""
        inputs = ["input_ids", *(["token_type_ids"] if token_types else []), "attention_mask"]
        config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs}
        config |= {f"{role}_token": name for role, name in self.names.items()}
        if self.limit is not None:
            config["model_max_length"] = self.limit
        (folder / FILE).write_text(self.to_json(), encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(as_json(config))

    @cached_property
    def promoting(self) -> "Tokenizer":
        """The same tokenizer, but special tokens written in the text are special: "<mask>" is the mask."""
        if self.special_in_text:
            return self
        return _revived(self.to_json(), self.names, self.limit, True)

    def encode(self, text: str, pair: str | None = None) -> Encoding:
        """The tokens of a text, or of a text and its pair."""
        text = _clean("text", text)
        return self._encoded([text if pair is None else (text, _clean("pair", pair))])[0]

    def encode_many(self, texts: Sequence[Input]) -> list[Encoding]:
        """The tokens of each text or (text, pair), in order, computed in parallel."""
        if isinstance(texts, str):
            raise bad("texts", "a list of texts", texts, "Use encode() for a single text.")
        return self._encoded([_clean_input(text) for text in texts])

    def decode(self, ids: Iterable[int], *, special: bool = True) -> str:
        """The text of some tokens; without special tokens if `special` is false."""
        with guarded("Decoding"):
            return str(self._backend.decode(self._known(ids), skip_special_tokens=not special))

    @property
    def additive(self) -> bool:
        """Whether decoding more tokens only appends text, apart from incomplete bytes at its end."""
        return type(self._backend.decoder).__name__ in ADDITIVE

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The tokens as the vocabulary spells them."""
        return [self._backend.id_to_token(index) or "" for index in self._known(ids)]

    def id_of(self, token: str) -> int | None:
        """The id of a token of the vocabulary."""
        index: int | None = self._backend.token_to_id(token)
        return index

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (self.to_json(), self.names, self.limit, self.special_in_text)

    def __repr__(self) -> str:
        kind = type(self._backend.model).__name__
        return f"Tokenizer({kind}, {self.vocab_size} ids, {', '.join(sorted(self.names.values()))})"

    def _known(self, ids: Iterable[int]) -> list[int]:
        return [whole("ids", index, 0, most=self.vocab_size - 1) for index in ids]

    def _encoded(self, texts: Sequence[Input]) -> list[Encoding]:
        """Our encodings; a text that has become a special token is encoded again without."""
        with guarded("Encoding"):
            encodings = encode(self._backend, self._places, texts)
        if self.special_in_text:
            return encodings
        for i, encoding in enumerate(encodings):
            if self._promoted(encoding):
                with guarded("Encoding"):
                    (encodings[i],) = encode(self._plain, self._places, [texts[i]])
                if self._promoted(encodings[i]):
                    raise InputError("The text holds a special token that this tokenizer cannot split.")
        return encodings

    @cached_property
    def _places(self) -> re.Pattern[str] | None:
        """Where long texts may be cut."""
        return places(json.loads(self.to_json()))

    def _promoted(self, encoding: Encoding) -> bool:
        return bool(np.any(self._forbidden[encoding.ids] & (encoding.source >= 0)))

    @cached_property
    def _forbidden(self) -> npt.NDArray[np.bool_]:
        """By id: special tokens that plain text must not become. Any text may be unknown."""
        table = np.zeros(self.vocab_size, bool)
        table[[index for index in self.special_ids if index != self.unk]] = True
        return table

    @cached_property
    def _plain(self) -> tokenizers.Tokenizer:
        """A copy that cannot spell special tokens: unigram models would match them like words."""
        state = json.loads(self.to_json())
        model = state["model"]
        special = set(map(self._backend.id_to_token, np.flatnonzero(self._forbidden).tolist()))
        unlikely = "{} \ufdd0".format  # no pre-tokenizer leaves a space and a noncharacter in one piece
        if isinstance(model["vocab"], list):
            model["vocab"] = [[unlikely(t) if t in special else t, score] for t, score in model["vocab"]]
        elif "merges" in model:
            model["merges"] = [pair for pair in model["merges"] if "".join(_pair(pair)) not in special]
        else:
            model["vocab"] = {unlikely(t) if t in special else t: i for t, i in model["vocab"].items()}
        plain = tokenizers.Tokenizer.from_str(json.dumps(state))
        plain.encode_special_tokens = True
        return plain


def _revived(text: str, names: Mapping[str, str], limit: int | None, special_in_text: bool) -> Tokenizer:
    return Tokenizer.from_json(text, names, limit=limit, special_in_text=special_in_text)


def _clean(name: str, text: object) -> str:
    """The string with each lone surrogate replaced: Rust strings cannot hold them."""
    if not isinstance(text, str):
        raise bad(name, "a string", type(text).__name__)
    return SURROGATE.sub("\ufffd", text)


def _clean_input(text: object) -> Input:
    if isinstance(text, str):
        return _clean("texts", text)
    if not isinstance(text, tuple | list) or len(text) != 2:
        raise bad("texts", "strings or (text, pair)", type(text).__name__)
    return _clean("texts", text[0]), _clean("texts", text[1])


def _pair(merge: str | list[str]) -> list[str]:
    return merge.split(" ") if isinstance(merge, str) else merge
