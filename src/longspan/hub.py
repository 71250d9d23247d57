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
    r"|\d+_\w+/(config\.json|model\.safetensors)"
)
_SAFETENSORS = re.compile(r"model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json")
_PICKLES = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin|pytorch_model\.bin\.index\.json")
_TENSORFLOW = re.compile(r"model\.ckpt(-\d+)?\.(index|data-\d{5}-of-\d{5})")

SelectFiles = Callable[[Iterable[str]], list[str]]


def cache_folder() -> Path:
    """Where models and indexes are kept: $LONGSPAN_CACHE, else longspan in $XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("LONGSPAN_CACHE"):
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "longspan"


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
    """The folder of that path, else the model of that name in the cache, else None."""
    folder = Path(os.path.expanduser(name))
    if str(name) and folder.is_dir():
        return folder
    return next((kept for kept in cached_models() if kept.name == str(name)), None)


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
    """The folder of a model: a path, "default", a name in the cache, or a name on the hub, first to last.

    A model on the hub is downloaded; `files` selects which of its files, `data_files` if None. The built-in
    model is not fetched here, but by `longspan.builtin.ensure`.
    """
    if trust_remote_code is not False:
        raise bad("trust_remote_code", "False", trust_remote_code, "Longspan runs no code of a checkpoint.")
    if not isinstance(name, str | os.PathLike):
        raise bad("model", MEANINGS, name)
    folder, name = local_folder(name), str(name)
    if folder is None and name == DEFAULT and (folder := builtin_folder()) is None:
        raise bad("model", "in the cache", name, "Fetch the built-in model with `longspan pull`.")
    if folder is not None:
        return folder
    if Path(os.path.expanduser(name)).is_file():
        raise bad("model", MEANINGS, name, "Give the folder that the file is in.")
    if not _NAME.fullmatch(name):
        raise bad("model", MEANINGS, name)
    if revision is not None and not _REVISION.fullmatch(revision):
        raise bad("revision", "a branch, a tag or a commit", revision)
    return _download(name, revision, cache_dir, token, local_files_only, files or data_files)


def data_files(names: Iterable[str]) -> list[str]:
    """The files of a repository that are worth a download: never code, pickles only for want of safetensors.

    TensorFlow checkpoints are ETC's, and for want of both.

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
            raise _absent(name, revision, "the hub has no such model, or not for you") from error
        except Exception:  # any failure of the network, whichever library the hub uses for it
            offline = True  # what was downloaded earlier may do
    options: dict[str, Any] = {"revision": revision, "cache_dir": cache_dir, "token": token}
    try:
        folder = snapshot_download(name, local_files_only=offline, allow_patterns=files, **options)
    except LocalEntryNotFoundError as error:
        why = "" if local else ", and the hub cannot be reached"
        raise _absent(name, revision, f"it is not in the cache{why}") from error
    except Exception as error:
        raise _absent(name, revision, f"the download failed ({type(error).__name__})") from error
    return Path(folder)


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
    return bad("model", f"a folder or a model within reach ({reason})", where, similar or "Check the name.")
