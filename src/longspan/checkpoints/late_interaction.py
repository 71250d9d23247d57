"""Folders of late-interaction models: those of PyLate and sentence-transformers, and ColBERT's own."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from longspan.checkpoints.sentence_transformers import LIMITS, MODULES
from longspan.errors import bad, refused
from longspan.families.base import OWN_CLASS, stated_class
from longspan.formats.files import inside, parse_json, read_json
from longspan.formats.part import Part
from longspan.formats.weights import Weights, open_weights
from longspan.tasks.late_interaction import FIELD, LATE_INTERACTION, Settings

STATED, METADATA, ORIGINAL = "config_sentence_transformers.json", "artifact.metadata", "HF_ColBERT"
OURS, THEIRS = "out.weight", "linear.weight"
"""The projection, as the task names it and as files do."""
_TYPE = re.compile(r"(?:sentence_transformers|pylate)\.(?:\w+\.){0,8}(\w+)", re.ASCII)
Fields = dict[str, tuple[object, ...]]
_MATRIX: Fields = {
    "bias": (False,),
    "activation_function": (None, "torch.nn.Identity", "torch.nn.modules.linear.Identity"),
    "use_residual": (None, False),
    "module_input_name": (None, "token_embeddings"),
}
_SKIPS: Fields = {"skiplist_tasks": (None, ["document"]), "keep_only_token_ids": (None,)}


CLASS = OWN_CLASS + LATE_INTERACTION.architecture
"""The class that files of our own type state."""


class LateInteraction(NamedTuple):
    """What a folder says of its token vectors."""

    settings: dict[str, object]
    "A field of config.json."
    dense: Path | None
    "The folder of the projection; None: it is among the model's own weights."

    def with_projection(self, weights: Weights) -> Weights:
        """The weights of the model, and the projection by our name."""
        source = weights if self.dense is None else open_weights(self.dense)
        if THEIRS not in source.shapes:
            raise refused(self.dense or "weights", f"it has no projection {THEIRS!r}")
        own = {name: shape for name, shape in weights.shapes.items() if name != THEIRS}
        parts = [Part(own, weights.__getitem__)]
        parts.append(Part({OURS: source.shapes[THEIRS]}, lambda name: source[THEIRS]))
        return Weights(parts)


def read_late_interaction(folder: Path) -> LateInteraction | None:
    """What such a folder says, None if it is another; types of modules are compared, never imported."""
    if (folder / MODULES).is_file():
        return _of_modules(folder)
    if not (folder / "config.json").is_file():
        return None
    raw = read_json(inside(folder, "config.json"))
    if stated_class(raw) != ORIGINAL:
        return None
    stated = read_json(inside(folder, METADATA)) if (folder / METADATA).is_file() else {}
    settings: dict[str, Any] = {
        "query_prefix": stated.get("query_token_id") or "[unused0]",
        "document_prefix": stated.get("doc_token_id") or "[unused1]",
        "query_length": stated.get("query_maxlen") or 32,
        "attend_to_expansion_tokens": bool(stated.get("attend_to_mask_tokens")),
    }
    if stated.get("mask_punctuation", True) is False:
        settings["skiplist_words"] = []
    return LateInteraction(_checked(settings), None)


def is_late_interaction(folder: Path) -> bool:
    """Whether a folder holds such a model, of any of these kinds or of our own."""
    if read_late_interaction(folder) is not None:
        return True
    path = folder / "config.json"
    return path.is_file() and read_json(inside(folder, "config.json")).get("architectures") == [CLASS]


def _of_modules(folder: Path) -> LateInteraction | None:
    """What modules.json says, if a projection of tokens follows the Transformer at once."""
    path = inside(folder, MODULES)
    if path.stat().st_size > 1 << 20:
        raise refused(path, "it is larger than a list of modules can be")
    listed = parse_json(b'{"modules": ' + path.read_bytes() + b"}", path)["modules"]
    modules = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    named = [_TYPE.fullmatch(str(one.get("type"))) for one in modules]
    kinds = [match[1] if match else "" for match in named]
    if kinds[:2] != ["Transformer", "Dense"] or "Pooling" in kinds:
        return None
    if sorted(kinds[2:]) not in ([], ["MultiVectorMask", "Normalize"]) or modules[0].get("path") != "":
        wanted = (
            "a Transformer in the folder itself and one Dense, perhaps with a MultiVectorMask and a Normalize"
        )
        raise refused(path, f"its modules are {', '.join(kinds)}, not {wanted}")
    places = [_place(folder, one, kind, path) for one, kind in zip(modules[1:], kinds[1:], strict=True)]
    _check_fields(places[0], _MATRIX, "Longspan computes a projection without bias, activation and residual.")
    stated = read_json(inside(folder, STATED)) if (folder / STATED).is_file() else {}
    if len(places) > 1:
        stated = _of_today(folder, stated, places[kinds.index("MultiVectorMask") - 1])
    known = Settings.__dataclass_fields__
    settings = {name: value for name, value in stated.items() if name in known and value is not None}
    return LateInteraction(_checked(settings), places[0])


def _of_today(folder: Path, stated: dict[str, Any], mask: Path) -> dict[str, Any]:
    """What sentence-transformers says since version 6, by the names that PyLate has for it."""
    skipped = _check_fields(mask, _SKIPS, "Longspan skips words of documents only.")
    prompts, limits = stated.get("prompts"), folder / LIMITS
    expansion = (read_json(inside(folder, LIMITS)) if limits.is_file() else {}).get("query_expansion")
    if expansion is not None and not isinstance(expansion, dict):
        raise bad("query_expansion", "a strategy and a length", expansion)
    if expansion is not None and not _expands_by_masks(expansion):
        raise bad("query_expansion", "fixed or min, by mask tokens", expansion, "Longspan has no other.")
    prompts = prompts if isinstance(prompts, dict) else {}
    settings = {
        "query_prefix": prompts.get("query") or "",
        "document_prefix": prompts.get("document") or "",
        "do_query_expansion": expansion is not None,
        "skiplist_words": skipped.get("skiplist_words") or [],
    }
    if expansion is not None:
        settings |= {
            "query_length": expansion.get("length"),
            "attend_to_expansion_tokens": expansion.get("attend"),
        }
    return settings


def _expands_by_masks(expansion: dict[str, Any]) -> bool:
    """Both strategies fill up short queries; what "fixed" cuts of long ones is read here."""
    return expansion.get("strategy") in ("fixed", "min") and expansion.get("token") is None


def _place(folder: Path, module: dict[str, Any], kind: str, path: Path) -> Path:
    """The folder of a module."""
    place = str(module.get("path"))
    if not re.fullmatch(rf"\d{{1,3}}_{kind}", place, re.ASCII) or (folder / place).is_symlink():
        raise refused(path, f"it names the folder {place!r}, which is not one like 1_{kind}")
    return folder / place


def _check_fields(place: Path, allowed: Fields, repair: str) -> dict[str, Any]:
    """What a module's config.json says, if it says nothing that is not computed here."""
    raw = read_json(inside(place, "config.json"))
    for name, usual in allowed.items():
        if raw.get(name) not in usual:
            raise bad(name, f"{usual[-1]} in {place.name}", raw.get(name), repair)
    return raw


def _checked(settings: dict[str, Any]) -> dict[str, object]:
    return Settings.of({FIELD: settings}).as_dict()
