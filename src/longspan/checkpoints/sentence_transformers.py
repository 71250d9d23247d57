"""Folders of sentence-transformers: the files that say how tokens become one vector, read and written."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from longspan.errors import bad, refused, whole
from longspan.families.config import LARGEST
from longspan.families.schema import flag
from longspan.formats.atomic import as_json
from longspan.formats.files import inside, parse_json, read_json
from longspan.formats.weights import open_weights, save_weights
from longspan.nn.heads import POOLINGS, PoolingHead
from longspan.nn.projection import Projection

MODULES, LIMITS = "modules.json", "sentence_bert_config.json"
CUSTOM = "custom_st.Transformer"
"""A module of code beside a model, that chooses its adapter: here a model is read whatever module says so."""
_MODULE_FILE = re.compile(
    r"\d{1,3}_(Pooling|Normalize|Dense)/config\.json|\d{1,3}_Dense/(model\.safetensors|pytorch_model\.bin)",
    re.ASCII,
)
_ACTIVATION = re.compile(r"torch\.nn\.(?:modules\.\w{1,40}\.)?(\w{1,40})", re.ASCII)
_CLASSES = {
    "identity": "torch.nn.modules.linear.Identity",
    **{
        name.lower(): f"torch.nn.modules.activation.{name}"
        for name in ("GELU", "ReLU", "SiLU", "Sigmoid", "Tanh")
    },
}
"""Activations of Dense modules: their names are compared, never imported."""
_DENSE = ("in_features", "out_features", "bias", "activation_function")
_FIXED = {
    "module_input_name": ("sentence_embedding",),
    "module_output_name": (None, "sentence_embedding"),
    "use_residual": (False,),
}
"""Fields of Dense modules of which Longspan computes one value only."""
_TYPE = re.compile(r"sentence_transformers\.(?:\w+\.){0,8}(\w+)|longspan\.st\.(Transformer)", re.ASCII)
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
    dense: tuple[Path, ...] = ()
    "The folders of what the pooled vector goes through."


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
    if kinds == ["Transformer"] and places == [folder]:
        return None  # a cross-encoder, whose head is the model's own
    between = kinds[2:-1] if kinds[-1:] == ["Normalize"] else kinds[2:]
    if kinds[:2] != ["Transformer", "Pooling"] or {*between} - {"Dense"}:
        expected = "a Transformer, a Pooling, perhaps some Dense and a Normalize"
        raise refused(path, f"its modules are {', '.join(kinds) or 'none'}, not {expected}")
    dense = tuple(place for kind, place in zip(kinds, places, strict=True) if kind == "Dense")
    return Modules(places[0], _pooling(places[1]), kinds[-1] == "Normalize", dense)


def write_modules(folder: Path, head: PoolingHead, width: int, longest: int) -> None:
    """The files that tell sentence-transformers and its kin how our vectors are made.

    A pooling that only Longspan has is named there, and refused by them.
    """
    projections = [part for part in head.projections if isinstance(part, Projection)]
    kinds = ["Transformer", "Pooling", *["Dense"] * len(projections), *["Normalize"] * head.normalize]
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
    for number, projection in enumerate(projections, 2):
        _write_dense(folder / f"{number}_Dense", projection)
    (folder / LIMITS).write_text(as_json({"max_seq_length": longest, "do_lower_case": False}))
    (folder / MODULES).write_text(as_json(listed))


def _write_dense(place: Path, projection: Projection) -> None:
    layer = projection.linear
    values = layer.in_features, layer.out_features, layer.bias is not None, _CLASSES[projection.act]
    place.mkdir()
    (place / "config.json").write_text(as_json(dict(zip(_DENSE, values, strict=True))))
    tensors = {f"linear.{name}": tensor.detach() for name, tensor in layer.named_parameters()}
    save_weights(place, tensors)


def read_projections(modules: Modules | None, width: int) -> list[Projection]:
    """What the pooled vector of so many numbers goes through, with its weights."""
    projections: list[Projection] = []
    for place in modules.dense if modules else ():
        path = inside(place, "config.json")
        raw = read_json(path)
        if other := sorted(raw.keys() - {*_DENSE, *_FIXED}):
            raise bad(f"{place.name}.{other[0][:80]}", f"one of {', '.join(_DENSE)}", "another word")
        for name, known in _FIXED.items():
            if raw.get(name, known[0]) not in known:
                raise bad(f"{place.name}.{name}", f"{known[-1]!r}", raw[name], "Longspan has no such module.")
        inputs, outputs = (
            whole(f"{place.name}.{name}", raw.get(name), 1, most=LARGEST) for name in _DENSE[:2]
        )
        if inputs != width:
            raise bad(f"{place.name}.in_features", f"{width}, as many as it is given", inputs)
        bias, act = flag(raw, "bias", True), _activation(raw, place)
        with torch.device("meta"):  # a config may ask for any size
            new = Projection(inputs, outputs, bias=bias, act=act)
        weights, wanted = open_weights(place), dict(new.linear.named_parameters())
        for name, parameter in wanted.items():
            key = f"linear.{name}"
            shape = weights.shapes[key][0] if key in weights.shapes else "absent"
            if shape != tuple(parameter.shape):
                raise refused(place, f"{key!r} is {shape}, but its config asks for {tuple(parameter.shape)}")
            if not weights.shapes[key][1].is_floating_point:
                raise refused(place, f"it holds weights of type {weights.shapes[key][1]}")
            setattr(new.linear, name, nn.Parameter(weights[key]))
        if unused := sorted(weights.shapes.keys() - {f"linear.{name}" for name in wanted}):
            raise refused(place, f"it holds {unused[0]!r}, which its config does not ask for")
        projections.append(new)
        width = outputs
    return projections


def _activation(raw: dict[str, Any], place: Path) -> str:
    """The activation of a Dense module, which is tanh if it does not say."""
    stated = raw.get("activation_function", _CLASSES["tanh"])
    match = _ACTIVATION.fullmatch(stated) if isinstance(stated, str) else None
    if match is None or match[1].lower() not in _CLASSES:
        raise bad(f"{place.name}.activation_function", f"one of {', '.join(_CLASSES.values())}", stated)
    return match[1].lower()


def is_module_file(name: str) -> bool:
    """Whether a file of that name says how vectors are made."""
    return name in (MODULES, LIMITS) or _MODULE_FILE.fullmatch(name) is not None


def _kind(module: dict[str, Any], path: Path) -> str:
    stated = module.get("type")
    if stated == CUSTOM:
        return "Transformer"
    match = _TYPE.fullmatch(stated) if isinstance(stated, str) else None
    if match is None:
        repair = "Longspan runs no code of a checkpoint."
        raise refused(path, f"it names a module of the type {stated!r}", repair)
    return match[1] or match[2]


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
