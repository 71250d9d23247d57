"""Folders of sentence-transformers: the files that say how tokens become one vector, read and written."""

import re
from pathlib import Path
from typing import Any, NamedTuple

from longspan.errors import bad, refused
from longspan.formats.atomic import as_json
from longspan.formats.files import inside, parse_json, read_json
from longspan.nn.heads import POOLINGS, PoolingHead

MODULES, LIMITS = "modules.json", "sentence_bert_config.json"
_MODULE_FILE = re.compile(r"\d{1,3}_(Pooling|Normalize)/config\.json", re.ASCII)
_TYPE = re.compile(r"sentence_transformers\.(?:\w+\.){0,8}(\w+)", re.ASCII)
_PATH = re.compile(r"\d{1,3}_\w{1,80}", re.ASCII)
_MODES = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_EARLIER = {"pooling_mode_salient_tokens": "sif"}
"""What earlier versions of Longspan wrote, and sentence-transformers does not know."""


class Modules(NamedTuple):
    """What modules.json says, as far as Longspan computes it."""

    transformer: Path
    "The folder of the model itself."
    pooling: str
    normalize: bool


def read_modules(folder: Path) -> Modules | None:
    """The modules of such a folder, None if it is another; their types are compared, never imported."""
    if not (folder / MODULES).is_file():
        return None
    path = inside(folder, MODULES)
    if path.stat().st_size > 1 << 20:
        raise refused(path, "it is larger than a list of modules can be")
    listed = parse_json(b'{"modules": ' + path.read_bytes() + b"}", path)["modules"]
    if not isinstance(listed, list) or not all(isinstance(module, dict) for module in listed):
        raise refused(path, "it does not hold a list of modules")
    kinds = [_kind(module, path) for module in listed]
    places = [_place(folder, module, path) for module in listed]
    if kinds[:1] != ["Transformer"] or kinds[1:] not in (["Pooling"], ["Pooling", "Normalize"]):
        expected = "a Transformer, a Pooling and perhaps a Normalize"
        raise refused(path, f"its modules are {', '.join(kinds) or 'none'}, not {expected}")
    return Modules(places[0], _pooling(places[1]), len(kinds) == 3)


def write_modules(folder: Path, head: PoolingHead, width: int, longest: int) -> None:
    """The files that tell sentence-transformers and its kin how our vectors are made.

    A pooling that only Longspan has is named there, and refused by them.
    """
    kinds = ["Transformer", "Pooling", *(["Normalize"] if head.normalize else [])]
    listed = [
        {
            "idx": number,
            "name": str(number),
            "path": f"{number}_{kind}" if number else "",
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, kind in enumerate(kinds)
    ]
    modes: dict[str, object] = {mode: ours == head.pooling for mode, ours in _MODES.items()}
    if head.pooling not in _MODES.values():
        modes = {"pooling_mode": head.pooling}
    pooling = {"word_embedding_dimension": width, **modes, "include_prompt": True}
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(as_json(pooling))
    (folder / LIMITS).write_text(as_json({"max_seq_length": longest, "do_lower_case": False}))
    (folder / MODULES).write_text(as_json(listed))


def is_module_file(name: str) -> bool:
    """Whether a file of that name says how vectors are made."""
    return name in (MODULES, LIMITS) or _MODULE_FILE.fullmatch(name) is not None


def _kind(module: dict[str, Any], path: Path) -> str:
    stated = module.get("type")
    match = _TYPE.fullmatch(stated) if isinstance(stated, str) else None
    if match is None:
        repair = "Longspan runs no code of a checkpoint."
        raise refused(path, f"it names a module of the type {stated!r}", repair)
    return match[1]


def _place(folder: Path, module: dict[str, Any], path: Path) -> Path:
    stated = module.get("path")
    if stated == "":
        return folder
    if not isinstance(stated, str) or not _PATH.fullmatch(stated):
        raise refused(path, f"it names the folder {stated!r}, which is not one like 1_Pooling")
    place = folder / stated
    if place.is_symlink():
        raise refused(place, "it is a link")
    return place


def _pooling(place: Path) -> str:
    """What a pooling module does: by its new key, or by its old flags."""
    path = inside(place, "config.json")
    raw = read_json(path)
    if "pooling_mode" in raw:
        stated = raw["pooling_mode"]
        modes = stated if isinstance(stated, list) else [stated]
        chosen = ["first" if mode == "cls" else mode for mode in modes]
    else:
        chosen = [ours for mode, ours in (_MODES | _EARLIER).items() if raw.get(mode) is True]
    if len(chosen) != 1 or chosen[0] not in POOLINGS:
        raise bad("pooling_mode", "one of cls, mean, max", chosen, f"Change {path.parent.name}/{path.name}.")
    return str(chosen[0])
