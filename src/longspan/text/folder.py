"""The tokenizer files of a folder. Nothing in them is executed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from tokenizers import AddedToken, Tokenizer, normalizers, pre_tokenizers, processors

from longspan.errors import InputError, bad
from longspan.formats.files import inside
from longspan.text.families import ANGLES, BRACKETS, FAMILIES, Family
from longspan.text.guard import check_added, check_ids, check_json, check_parts, check_regexes, guarded

ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
MOST_BYTES = 128 << 20
NO_LIMIT = 10**9  # Hugging Face writes 1e30 where there is none
GENERIC = ("PreTrainedTokenizer", "TokenizersBackend")
FLAGS = ("do_lower_case", "strip_accents", "tokenize_chinese_chars", "add_prefix_space")
SOURCES = ("tokenizer.json", *(" + ".join(family.files) for family in FAMILIES))


@dataclass(frozen=True)
class Source:
    """What a folder holds: a tokenizer, its special tokens by role, and the model's longest input."""

    backend: Tokenizer
    names: dict[str, str]
    limit: int | None


def read_folder(path: str | Path, vocab_size: int | None = None) -> Source:
    """The tokenizer of a folder; ids from `vocab_size` on are an error, unless that is None."""
    folder = _home(Path(path))
    options = _options(folder)
    if (folder / "tokenizer.json").is_file():
        backend, tokens = _from_json(read_file(folder / "tokenizer.json"), options, vocab_size)
    else:
        backend, tokens = _from_vocabulary(folder, options, vocab_size)
    if _read_json(folder / "sentence_bert_config.json").get("do_lower_case") is True:
        rest = [] if backend.normalizer is None else [backend.normalizer]
        backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), *rest])
    check_ids(backend, vocab_size)
    names = {role: t.content for role, t in tokens.items() if backend.token_to_id(t.content) is not None}
    return Source(backend, names, _limit(options))


def parse(text: str) -> Tokenizer:
    """The tokenizer that a tokenizer.json describes, its regexes checked."""
    check_json(text)
    with guarded("Reading tokenizer.json"):
        backend = Tokenizer.from_str(text)
    backend.no_truncation()  # whatever the file says
    backend.no_padding()
    check_parts(backend)
    check_regexes(backend)
    return backend


def read_file(path: Path) -> bytes:
    """The file's content, unless it is absurdly large or a link that leads out of its folder."""
    size = inside(path.parent, path.name).stat().st_size
    if size > MOST_BYTES:
        raise bad(path.name, f"at most {MOST_BYTES >> 20} MB long", f"{size >> 20} MB")
    return path.read_bytes()


def conventional_names(backend: Tokenizer) -> dict[str, str]:
    """The special tokens of BERT and RoBERTa by role, those that the vocabulary has."""
    known: dict[str, str] = {}
    for role in ROLES:
        for names in (ANGLES, BRACKETS):  # where both exist, as in BigBird's, brackets win
            if role in names and backend.token_to_id(names[role]) is not None:
                known[role] = names[role]
    return known


def _home(path: Path) -> Path:
    """The folder itself, or the first module's folder of a sentence-transformers model."""
    if not path.is_dir():
        raise bad("path", "a folder", str(path))
    files = ["tokenizer.json", *(family.files[0] for family in FAMILIES)]
    if any((path / name).is_file() for name in files):
        return path
    modules = _read_json(path / "modules.json", list)
    first = modules[0].get("path") if modules and isinstance(modules[0], dict) else None
    if isinstance(first, str) and first:
        inner = PurePosixPath(first)
        odd = inner.is_absolute() or ".." in inner.parts or "\\" in first or ":" in first
        if odd or not (path / inner).resolve().is_relative_to(path.resolve()):
            raise bad("modules.json", "naming folders inside the model's own", first)
        if any((path / inner / name).is_file() for name in files):
            return path / inner
    raise bad("path", f"a folder with one of {', '.join(SOURCES)}", str(path))


def _options(folder: Path) -> dict[str, Any]:
    """tokenizer_config.json and the files of older folders, combined as transformers does."""
    options: dict[str, Any] = _read_json(folder / "tokenizer_config.json")
    if "added_tokens_decoder" not in options:
        options |= _read_json(folder / "special_tokens_map.json")
        added = _read_json(folder / "added_tokens.json")
        special = {token.content for token in (*_named(options).values(), *_extras(options))}
        options["added_tokens_decoder"] = {
            str(index): {"content": text, "special": text in special, "normalized": text not in special}
            for text, index in added.items()
        }
    if not isinstance(options["added_tokens_decoder"], dict):
        raise bad("added_tokens_decoder", "an object of ids and tokens", options["added_tokens_decoder"])
    for flag in FLAGS:
        if options.get(flag) is None:
            options.pop(flag, None)
        elif not isinstance(options[flag], bool):
            raise bad(flag, "true or false", options[flag])
    return options


def _from_json(
    data: bytes, options: Mapping[str, Any], vocab_size: int | None
) -> tuple[Tokenizer, dict[str, AddedToken]]:
    try:
        backend = parse(data.decode())
    except UnicodeDecodeError as error:
        raise InputError(f"`tokenizer.json` must be UTF-8, but is not at byte {error.start}.") from None
    # tokenizer_config.json overrides case and spaces, as in transformers.
    if isinstance(backend.normalizer, normalizers.BertNormalizer):
        backend.normalizer.lowercase = options.get("do_lower_case", backend.normalizer.lowercase)
        backend.normalizer.strip_accents = options.get("strip_accents", backend.normalizer.strip_accents)
        chinese = options.get("tokenize_chinese_chars", backend.normalizer.handle_chinese_chars)
        backend.normalizer.handle_chinese_chars = chinese
    if isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
        prefix = options.get("add_prefix_space", backend.pre_tokenizer.add_prefix_space)
        backend.pre_tokenizer.add_prefix_space = prefix
        if isinstance(backend.post_processor, processors.RobertaProcessing):
            # If the two disagreed, the first word's offset would be off by one.
            backend.post_processor.add_prefix_space = prefix
    guessed = {role: _added(name) for role, name in conventional_names(backend).items()}
    tokens = {role: token for role, token in guessed.items() if f"{role}_token" not in options}
    tokens |= _named(options)
    _add(backend, [*tokens.values(), *_extras(options)], vocab_size)
    return backend, tokens


def _from_vocabulary(
    folder: Path, options: Mapping[str, Any], vocab_size: int | None
) -> tuple[Tokenizer, dict[str, AddedToken]]:
    family = _family(folder, options)
    named = _named(options)
    tokens = {role: _added(name) for role, name in family.names.items()} | named
    names = {role: token.content for role, token in tokens.items()}
    with guarded(f"Reading {' and '.join(family.files)}"):
        backend, pieces = family.build([read_file(folder / name) for name in family.files], names, options)
        check_parts(backend)
        declared = {int(index): _added(token) for index, token in options["added_tokens_decoder"].items()}
        _add(backend, [declared[index] for index in sorted(declared)], vocab_size)
        known = backend.get_vocab()
        needed = [tokens[role] for role in tokens if role in ("cls", "sep", *named) or names[role] in known]
        _add(backend, [*needed, *_extras(options)], vocab_size)
        for piece in pieces:
            piece.special = piece.special or piece.content in names.values()
        check_added(piece.content for piece in pieces)
        backend.add_tokens(pieces)  # they come last: their flags win over those of the named tokens
        known = backend.get_vocab()
        backend.post_processor = family.template(
            names, {role: known[name] for role, name in names.items() if name in known}, options
        )
    for index, token in declared.items():
        if known.get(token.content) != index:
            raise bad(f"id of {token.content!r}", f"{index} as the folder says", known.get(token.content))
    return backend, tokens


def _family(folder: Path, options: Mapping[str, Any]) -> Family:
    class_name = str(options.get("tokenizer_class") or "").removesuffix("Fast")
    present = [family for family in FAMILIES if all((folder / name).is_file() for name in family.files)]
    if not present:
        raise bad("path", f"a folder with one of {', '.join(SOURCES)}", str(folder))
    fitting = [family for family in present if class_name in (*family.classes, *GENERIC, "")]
    if not fitting:
        known = ", ".join(dict.fromkeys(name for family in present for name in family.classes))
        repair = "Load it with transformers and save it: the folder then has a tokenizer.json."
        raise bad("tokenizer_class", f"one of {known} to read {present[0].files[0]}", class_name, repair)
    model_type = _read_json(folder / "config.json").get("model_type")
    return next((family for family in fitting if model_type in family.models), fitting[0])


def _add(backend: Tokenizer, tokens: list[AddedToken], vocab_size: int | None) -> None:
    """Add tokens that are not yet special tokens, except those without a row in the model.

    All in one call: each call builds the library's automaton afresh, and it may have 100,000 tokens.
    """
    special = {token.content for token in backend.get_added_tokens_decoder().values() if token.special}
    room = None if vocab_size is None else vocab_size - backend.get_vocab_size()
    chosen: list[AddedToken] = []
    new: set[str] = set()
    for token in tokens:
        if token.content in special:
            continue
        if backend.token_to_id(token.content) is None and token.content not in new:
            if room is not None and len(new) >= room:
                continue
            new.add(token.content)
        chosen.append(token)
    check_added(token.content for token in chosen)
    backend.add_tokens(chosen)


def _named(options: Mapping[str, Any]) -> dict[str, AddedToken]:
    values = {role: options.get(f"{role}_token") for role in ROLES}
    return {role: _added(value) for role, value in values.items() if value is not None}


def _extras(options: Mapping[str, Any]) -> list[AddedToken]:
    extras = options.get("extra_special_tokens") or options.get("additional_special_tokens") or []
    if not isinstance(extras, list | dict):
        raise bad("extra_special_tokens", "a list", extras)
    return [_added(value) for value in (extras.values() if isinstance(extras, dict) else extras)]


def _added(value: object) -> AddedToken:
    """A token as tokenizer_config.json writes it: a string, or an object with flags."""
    content = value.get("content") if isinstance(value, dict) else value
    if not isinstance(content, str):
        raise bad("special token", "a string, or an object with its content", value)
    if any("\ud800" <= letter <= "\udfff" for letter in content):  # JSON can write halves of characters
        raise bad("special token", "valid Unicode", value)
    if not isinstance(value, dict):
        return AddedToken(content, special=True, normalized=False)
    flags = {name: value[name] for name in ("single_word", "lstrip", "rstrip", "normalized") if name in value}
    if not all(isinstance(flag, bool) for flag in flags.values()):
        raise bad("special token", "an object of true and false", value)
    return AddedToken(content, special=value.get("special", True) is True, **flags)


def _limit(options: Mapping[str, Any]) -> int | None:
    limit = options.get("model_max_length")
    return int(limit) if isinstance(limit, int | float) and 0 < limit < NO_LIMIT else None


def _read_json(path: Path, kind: type[Any] = dict) -> Any:
    """The JSON value of a file; without the file, an empty value."""
    if not path.is_file():
        return kind()
    data = read_file(path)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"`{path.name}` must be JSON, but is not: {error}.") from None
    if not isinstance(value, kind):
        raise bad(path.name, f"a JSON {'object' if kind is dict else 'list'}", type(value).__name__)
    return value
