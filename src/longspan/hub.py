"""One way from a model's name to its folder: a path, Longspan's cache, or the Hugging Face hub."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from socket import getaddrinfo
from typing import Any
from urllib.parse import urlsplit

from longspan.errors import InputError, bad, guess

DEFAULT = "default"
"""The name that the built-in model is loaded by."""
BUILTIN = "all-MiniLM-L6-v2-stitched"
"""Its folder in the cache; longspan.builtin puts it there."""
MEANINGS = f'a folder, "{DEFAULT}", a name that `longspan models` lists or a name on the Hugging Face hub'
_NAME = re.compile(r"(?!.*(\.\.|--))[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
_REVISION = re.compile(r"(?!.*\.\.)[A-Za-z0-9][\w./-]{0,250}", re.ASCII)
_DATA = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab)\.json"
    r"|vocab\.txt|merges\.txt|spiece\.model|sentencepiece\.bpe\.model"
    r"|etc_config\.json|vocab_bert_uncased_english\.txt"
    r"|modules\.json|sentence_bert_config\.json|config_sentence_transformers\.json"
    r"|(sparse|colbert)_linear\.pt"
    r"|\d+_\w+/(config\.json|model\.safetensors)"
)
_SAFETENSORS = re.compile(r"model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json")
_PICKLES = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin|pytorch_model\.bin\.index\.json")
_TENSORFLOW = re.compile(r"model\.ckpt(-\d+)?\.(index|data-\d{5}-of-\d{5})")

SelectFiles = Callable[[Iterable[str]], list[str]]


def cache_folder() -> Path:
    """Where models and indexes are kept: $LONGSPAN_CACHE, else longspan in $XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("LONGSPAN_CACHE"):
        return _absolute(folder)
    return _absolute(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "longspan"


def cached_models() -> list[Path]:
    """The folders of the models in the cache."""
    place = cache_folder() / "models"
    folders = sorted(place.iterdir()) if place.is_dir() else []
    return [folder for folder in folders if folder.is_dir() and not folder.name.startswith(".")]


def builtin_folder() -> Path | None:
    """The folder of the built-in model, if it is in the cache."""
    folder = cache_folder() / "models" / BUILTIN
    return folder if folder.is_dir() else None


def local_folder(name: str | Path) -> Path | None:
    """The folder that a model's name means on this machine, if there is one; the path is absolute.

    "default" is the built-in model, also where a folder is called so: write "./default" for that one. Else a
    folder comes before a model in the cache, and a Path is always a folder.
    """
    if name == DEFAULT:
        return builtin_folder()
    folder = _absolute(name)
    if str(name) and os.path.isdir(folder):
        return folder
    return None if _is_path(name) else next((kept for kept in cached_models() if kept.name == name), None)


def _absolute(path: str | Path) -> Path:
    return Path(os.path.abspath(os.path.expanduser(path)))


def _is_path(name: str | Path) -> bool:
    """Whether a name can only mean a folder."""
    return isinstance(name, os.PathLike) or name.startswith(("/", "~", "./", "../")) or name in (".", "..")


def resolve(
    name: str | Path,
    *,
    revision: str | None = None,
    cache_dir: str | Path | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    trust_remote_code: bool = False,
    files: SelectFiles | None = None,
) -> Path:
    """The absolute folder of a model: the built-in one, a path, a name in the cache or on the hub.

    The first that fits is taken, as `local_folder` says; a name that begins with "./" is a path. A model on
    the hub is downloaded; `files` selects which of its files, `data_files` if None. The built-in model is not
    fetched here, but by `longspan.builtin.ensure`.
    """
    if trust_remote_code is not False:
        raise bad("trust_remote_code", "False", trust_remote_code, "Longspan runs no code of a checkpoint.")
    if not isinstance(name, str | os.PathLike):
        raise bad("model", MEANINGS, name)
    if (folder := local_folder(name)) is not None:
        return folder
    if name == DEFAULT:
        raise bad("model", "in the cache", name, "Fetch the built-in model with `longspan pull`.")
    if os.path.isfile(_absolute(name)):
        raise bad("model", MEANINGS, str(name), "Give the folder that the file is in.")
    if _is_path(name):
        raise bad("model", "a folder that exists", str(name))
    name = str(name)
    if not _NAME.fullmatch(name):
        raise bad("model", MEANINGS, name)
    if revision is not None and not _REVISION.fullmatch(revision):
        raise bad("revision", "a branch, a tag or a commit", revision)
    return _download(name, revision, cache_dir, token, local_files_only, files or data_files)


def data_files(names: Iterable[str]) -> list[str]:
    """The files of a repository that are worth a download: never code, pickles only for want of safetensors.

    TensorFlow checkpoints are ETC's, and for want of both. Heads beside a model exist as pickles only.

    >>> data_files(["config.json", "model.safetensors", "pytorch_model.bin", "modeling.py"])
    ['config.json', 'model.safetensors']
    """
    present = sorted(set(names))
    safe = [name for name in present if _SAFETENSORS.fullmatch(name)]
    weights = safe or [name for name in present if _PICKLES.fullmatch(name)]
    if not weights and "etc_config.json" in present:
        weights = [name for name in present if _TENSORFLOW.fullmatch(name)]
    return [name for name in present if _DATA.fullmatch(name)] + weights


def _download(
    name: str,
    revision: str | None,
    cache_dir: str | Path | None,
    token: str | bool | None,
    local: bool,
    select: SelectFiles,
) -> Path:
    from huggingface_hub import HfApi, constants, snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError

    files: list[str] | None = None
    offline = local or constants.HF_HUB_OFFLINE or not _has_address(constants.ENDPOINT)
    if not offline:
        try:
            files = select(HfApi(token=token).list_repo_files(name, revision=revision))
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            raise _absent(name, revision, "and the hub has no such model, or not for you") from error
        except Exception:  # any failure of the network, whichever library the hub uses for it
            offline = True  # what was downloaded earlier may do
    options: dict[str, Any] = {"revision": revision, "cache_dir": cache_dir, "token": token}
    try:
        folder = snapshot_download(name, local_files_only=offline, allow_patterns=files, **options)
    except LocalEntryNotFoundError as error:
        why = (
            "and it is not in the cache" if local else "it is not in the cache, and the hub cannot be reached"
        )
        raise _absent(name, revision, why) from error
    except Exception as error:
        raise _absent(name, revision, f"and the download failed ({type(error).__name__})") from error
    return _absolute(folder)


def _has_address(url: str) -> bool:
    """Whether the host of a URL can be looked up: where not, the hub's client retries for long."""
    from urllib.request import getproxies  # which loads all of http: a search by a warm process does without

    if getproxies():
        return True  # the proxy looks names up
    try:
        getaddrinfo(urlsplit(url).hostname, None)
    except OSError:
        return False
    return True


def _absent(name: str, revision: str | None, reason: str) -> InputError:
    where = name if revision is None else f"{name} at {revision}"
    similar = guess(name, [DEFAULT, *(folder.name for folder in cached_models())])
    why = f"There is no such folder, {reason}."
    return bad("model", MEANINGS, where, f"{why} {similar}".rstrip())
