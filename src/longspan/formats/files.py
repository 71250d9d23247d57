"""Which files belong to a checkpoint, and how to read the small ones without trusting them."""

import json
import os
import re
import stat
from collections import Counter
from collections.abc import Callable, Iterable
from math import isfinite
from pathlib import Path
from socket import getaddrinfo
from typing import Any, BinaryIO
from urllib.parse import urlsplit
from urllib.request import getproxies

from longspan.errors import CheckpointError, InputError, bad, refused

DEEPEST = 64
"""Levels of lists and objects that JSON may nest; real files have about five."""
_NAME = re.compile(r"(?!.*(\.\.|--))[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
_REVISION = re.compile(r"(?!.*\.\.)[A-Za-z0-9][\w./-]{0,250}", re.ASCII)
_DATA = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|vocab\.txt|merges\.txt|spiece\.model|sentencepiece\.bpe\.model"
    r"|etc_config\.json|vocab_bert_uncased_english\.txt"
    r"|modules\.json|sentence_bert_config\.json|config_sentence_transformers\.json"
    r"|\d+_\w+/(config\.json|model\.safetensors)"
)
_SAFE_WEIGHTS = re.compile(r"model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json")
_PICKLED_WEIGHTS = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin|pytorch_model\.bin\.index\.json")
_TF_WEIGHTS = re.compile(r"model\.ckpt(-\d+)?\.(index|data-\d{5}-of-\d{5})")
_PLAIN = re.compile(r"\w[\w.-]{0,199}", re.ASCII)
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)  # open a device on Windows


def resolve(
    folder_or_name: str | Path,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    trust_remote_code: bool = False,
    choose: Callable[[Iterable[str]], list[str]] | None = None,
) -> Path:
    """The folder itself if it exists; else the data files of the so named model of the Hugging Face hub.

    `choose` says which of the repository's files are downloaded, those that are `wanted` if None.
    """
    if trust_remote_code is not False:
        raise bad("trust_remote_code", "False", trust_remote_code, "Longspan runs no code of a checkpoint.")
    name = str(folder_or_name)
    folder = Path(os.path.expanduser(name))
    if name and folder.is_dir():
        return folder
    if not _NAME.fullmatch(name):
        raise bad("folder_or_name", "an existing folder or the name of a model on the hub", name)
    if revision is not None and not _REVISION.fullmatch(revision):
        raise bad("revision", "a branch, a tag or a commit", revision)
    return _download(name, revision, cache_dir, token, local_files_only, choose or wanted)


def wanted(names: Iterable[str]) -> list[str]:
    """The files of a repository that are worth a download: never code, pickles only for want of safetensors.

    Checkpoints of TensorFlow are ETC's, and for want of both.

    >>> wanted(["config.json", "model.safetensors", "pytorch_model.bin", "modeling.py"])
    ['config.json', 'model.safetensors']
    """
    present = sorted(set(names))
    safe = [name for name in present if _SAFE_WEIGHTS.fullmatch(name)]
    weights = safe or [name for name in present if _PICKLED_WEIGHTS.fullmatch(name)]
    if not weights and "etc_config.json" in present:
        weights = [name for name in present if _TF_WEIGHTS.fullmatch(name)]
    return [name for name in present if _DATA.fullmatch(name)] + weights


def _download(
    name: str,
    revision: str | None,
    cache_dir: str | Path | None,
    token: str | bool | None,
    local: bool,
    choose: Callable[[Iterable[str]], list[str]],
) -> Path:
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

    files: list[str] | None = None
    offline = local or constants.HF_HUB_OFFLINE or not _known(constants.ENDPOINT)
    if not offline:
        try:
            files = choose(HfApi(token=token).list_repo_files(name, revision=revision))
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            raise _absent(name, revision, "the hub has no such model, or not for you") from error
        except Exception:  # any failure of the network, whichever library the hub uses for it
            offline = True  # what was downloaded earlier may do
    options: dict[str, Any] = {"revision": revision, "cache_dir": cache_dir, "token": token}
    try:
        found = snapshot_download(name, local_files_only=offline, allow_patterns=files, **options)
    except LocalEntryNotFoundError as error:
        why = "" if local else ", and the hub cannot be reached"
        raise _absent(name, revision, f"it is not in the cache{why}") from error
    except Exception as error:
        raise _absent(name, revision, f"the download failed ({type(error).__name__})") from error
    return Path(found)


def _known(address: str) -> bool:
    """Whether the host of a web address can be looked up: where not, the hub's client retries for long."""
    if getproxies():
        return True  # the proxy looks names up
    try:
        getaddrinfo(urlsplit(address).hostname, None)
    except OSError:
        return False
    return True


def _absent(name: str, revision: str | None, reason: str) -> InputError:
    where = name if revision is None else f"{name} at {revision}"
    return bad("folder_or_name", f"a folder or a model within reach ({reason})", where, "Check the name.")


def inside(folder: Path, name: str, suffix: str = "") -> Path:
    """The regular file `name` directly in `folder`; names and links that lead elsewhere are refused."""
    if not _PLAIN.fullmatch(name) or _DEVICES.fullmatch(name):
        raise refused(name, "it is not the plain name of a file", "Fix the index that names it.")
    if not name.endswith(suffix):
        raise refused(name, f"its name does not end in {suffix}", "Fix the index that names it.")
    path = folder / name
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError):
        raise refused(path, "it does not exist", "Download or save the checkpoint again.") from None
    if not any(real.parent == home or home in real.parents for home in _homes(folder.resolve())):
        raise refused(path, f"it is a link to {real}, outside of its folder", "Put the file itself there.")
    if not stat.S_ISREG(real.stat().st_mode):
        raise refused(path, "it is not a regular file")
    return path


def _homes(folder: Path) -> list[Path]:
    """Where the files of `folder` may lie: in it, or in the two blob stores of the hub's cache."""
    for snapshot in (folder, folder.parent):  # the second for folders such as 1_Pooling
        repository = snapshot.parent.parent
        if snapshot.parent.name == "snapshots" and repository.name.startswith("models--"):
            return [folder, repository / "blobs", repository.parent / "blobs"]
    return [folder]


def exactly(file: BinaryIO, count: int, path: Path) -> bytes:
    """The next `count` bytes; the caller has compared `count` with the size of the file."""
    data = file.read(count)
    if len(data) != count:
        raise cut_off(path)
    return data


def cut_off(path: Path) -> CheckpointError:
    """The error for a file that ends too early."""
    return refused(path, "it was cut off", "Download or save it again.")


def read_json(path: Path, most_bytes: int = 8 << 20) -> dict[str, Any]:
    """The object that a JSON file holds: at most `most_bytes`, no key twice, no NaN, not nested absurdly."""
    try:
        mode = path.stat().st_mode
    except OSError:
        raise refused(path, "it does not exist", "Download or save the checkpoint again.") from None
    if not stat.S_ISREG(mode):
        raise refused(path, "it is not a regular file")
    with path.open("rb") as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise refused(path, f"it is larger than {most_bytes:,} bytes")
    return parse_json(data, path)


def parse_json(data: bytes, path: Path) -> dict[str, Any]:
    """The object written in `data`; `path` is named in errors."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(path, f"it is not UTF-8 text (byte {error.start})", "Save it as UTF-8.") from None
    try:
        found = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_short,
        )
    except RecursionError:
        raise refused(path, f"it nests deeper than {DEEPEST} levels") from None
    except ValueError as error:
        raise refused(path, f"it is not the JSON expected here ({error})") from None
    if not isinstance(found, dict):
        raise refused(path, "it does not hold a JSON object")
    if _deeper_than(found, DEEPEST):
        raise refused(path, f"it nests deeper than {DEEPEST} levels")
    return found


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:80]!r} stands twice")
    return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _finite(digits: str) -> float:
    if not isfinite(number := float(digits)):
        raise ValueError(f"{digits[:40]} is too large for a number")
    return number


def _short(digits: str) -> int:
    if len(digits) > 40:  # far beyond any size; longer ones take quadratic time
        raise ValueError(f"{digits[:40]}... is too large for a number")
    return int(digits)


def _deeper_than(value: object, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [
            child
            for item in layer
            if isinstance(item, dict | list)
            for child in (item.values() if isinstance(item, dict) else item)
        ]
    return any(isinstance(item, dict | list) for item in layer)
