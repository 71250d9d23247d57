"""config.json as data: known fields are checked, errors use the file's words, the rest is never looked at."""

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from longspan.errors import InputError, bad, whole
from longspan.families.config import EncoderConfig

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Raw = Mapping[str, Any]
C = TypeVar("C", bound="DataclassInstance")

_TABLE = (
    ("vocab_size", "vocab_size", 30522),
    ("hidden_size", "width", 768),
    ("num_hidden_layers", "layers", 12),
    ("num_attention_heads", "heads", 12),
    ("intermediate_size", "feed_forward", 3072),
    ("type_vocab_size", "token_types", 2),
    ("hidden_act", "activation", "gelu"),
    ("hidden_dropout_prob", "dropout", 0.1),
    ("attention_probs_dropout_prob", "attention_dropout", 0.1),
    ("layer_norm_eps", "norm_eps", 1e-12),
    ("initializer_range", "init_std", 0.02),
)
FIELDS = {theirs: ours for theirs, ours, _ in _TABLE}
"""Their names and ours, where the meaning is the same."""
DEFAULTS = {theirs: default for theirs, _, default in _TABLE} | {"max_position_embeddings": 512}
"""What a field that is not there means to Hugging Face, in most families."""
OWN = "encoder"
"""Where config.json of our own model types keeps the fields of our config."""
DISK_NAMES = {
    "token_types": "types",
    "embedding_size": "narrow",
    "attention_type": "attention",
    "sif_weights": "salience",
}
"""Fields that our own files have under another name."""


def common(raw: Raw, *, pad: int, defaults: Raw, offset: bool) -> dict[str, Any]:
    """Our fields that all families share; with `offset` positions begin behind the padding token's number."""
    refuse_unsupported(raw)
    known = {**DEFAULTS, **defaults, **raw}
    fields_of = {ours: known[theirs] for theirs, ours in FIELDS.items()}
    text(known, "hidden_act")
    whole("type_vocab_size", known["type_vocab_size"], 1)
    pad_id = whole("pad_token_id", raw.get("pad_token_id", pad), 0)
    shift = pad_id + 1 if offset else 0
    rows = whole("max_position_embeddings", known["max_position_embeddings"], 1 + shift)
    return fields_of | {"pad_id": pad_id, "position_offset": shift, "positions": rows - shift}


def shared(config: EncoderConfig) -> dict[str, Any]:
    """The same the other way round."""
    fields_of = {theirs: getattr(config, ours) for theirs, ours in FIELDS.items()}
    rows = config.positions + config.position_offset
    return fields_of | {"pad_token_id": config.pad_id, "max_position_embeddings": rows}


def build_config(
    kind: type[C], read: Mapping[str, Any], names: Mapping[str, str] = FIELDS, file: str = "config.json"
) -> C:
    """The config of these fields; its errors name them as the file does."""
    try:
        return kind(**read)
    except InputError as error:
        message = str(error)
        also = {"max_position_embeddings": "positions", "pad_token_id": "pad_id"}
        for theirs, ours in (*names.items(), *also.items()):
            message = message.replace(f"`{ours}`", f"`{theirs}`")
        raise InputError(f"{message} It stands in {file}.") from None


def refuse_unsupported(raw: Raw) -> None:
    """Fields whose other values would make a different model."""
    for name, only in (
        ("position_embedding_type", (None, "absolute")),
        ("add_cross_attention", (None, False)),
        ("quantization_config", (None,)),
    ):
        if raw.get(name) not in only:
            raise bad(name, f"{only[-1]!r}", raw[name], "Longspan has no such model.")


def flag(raw: Raw, name: str, default: bool) -> bool:
    """A field that is true or false."""
    value = raw.get(name, default)
    if not isinstance(value, bool):
        raise bad(name, "true or false", value)
    return value


def text(raw: Raw, name: str) -> str:
    """A field that is a word."""
    value = raw[name]
    if not isinstance(value, str):
        raise bad(name, "a word", value)
    return value


def numbers(name: str, value: object, count: int) -> tuple[int, ...]:
    """A field that is one number, or one for each of `count` layers."""
    if not isinstance(value, (list, tuple)):
        return (whole(name, value, 1),) * count
    if len(value) != count:
        raise bad(name, f"one number, or one for each of the {count} layers", f"{len(value)} numbers")
    return tuple(whole(f"{name}[{layer}]", number, 1) for layer, number in enumerate(value))


def read_own(kind: type[C], raw: Raw, under: str = OWN, **known: Any) -> C:
    """A config that we wrote because Hugging Face has no words for it: our fields and no others.

    They are found `under` a name; fields that are `known` are not. A field that is a value with fields of its
    own is read alike.
    """
    stored = raw.get(under)
    if not isinstance(stored, dict):
        raise bad(under, "the fields of a Longspan model", stored)
    ours = {DISK_NAMES.get(one.name, one.name): one for one in fields(kind) if one.name not in known}
    read: dict[str, Any] = {}
    for name, value in stored.items():
        if name not in ours:
            raise bad(f"{under}.{name[:80]}", f"one of {', '.join(ours)}", "another word", "Update Longspan.")
        default, numeric = ours[name].default, float in get_args(ours[name].type)
        if is_dataclass(default) and not isinstance(default, type):
            read[ours[name].name] = read_own(type(default), stored, name)
            continue
        if isinstance(default, bool):
            flag(stored, name, default)
        elif isinstance(default, str):
            text(stored, name)
        elif (
            not (isinstance(default, float) or numeric or isinstance(value, list))
            and not value is default is None
        ):
            whole(name, value, 0)
        read[ours[name].name] = _frozen(value)
    return kind(**known, **read)


def write_own(config: Any, under: str = OWN, *known: str) -> dict[str, Any]:
    """All fields of a config, by the names our files have for them, except those that are `known`."""
    stored = {name: value for name, value in asdict(config).items() if name not in known}
    return {under: {DISK_NAMES.get(name, name): value for name, value in stored.items()}}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
