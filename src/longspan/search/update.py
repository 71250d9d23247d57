"""What bringing an index up to date needs: what changed, by which model, how far it is, what was done."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longspan.reader import Reader


@dataclass
class Report:
    """What an update of an index did."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    removed: int = 0
    unchanged: int = 0
    failed: list[tuple[Path, str]] = field(default_factory=list)
    "Files that could not be read, and why; what the index knew of them before, it still knows."
    skipped: list[tuple[Path, str]] = field(default_factory=list)
    "Files in folders that are no documents, such as pictures, and why."
    n_tokens: int = 0
    truncated: int = 0
    seconds: float = 0.0

    @property
    def encoded(self) -> int:
        """How many files the model has read."""
        return self.added + self.changed

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        lists = {
            name: [{"file": str(path), "reason": why} for path, why in getattr(self, name)]
            for name in ("failed", "skipped")
        }
        return vars(self) | lists

    def __str__(self) -> str:
        counts = {name: getattr(self, name) for name in ("added", "changed", "moved", "removed", "unchanged")}
        counts["skipped"] = len(self.skipped)
        parts = [f"{count} {name}" for name, count in counts.items() if count] or ["nothing to do"]
        speed = (
            f", {self.n_tokens:,} tokens at {self.n_tokens / self.seconds:,.0f}/s" if self.n_tokens else ""
        )
        return f"{', '.join(parts)}{speed}"


def fingerprint(reader: "Reader") -> str:
    """The same for the same weights, config, tokenizer and pooling, wherever they came from."""
    config = reader.model.config
    values = [(each.name, getattr(config, each.name), each.default) for each in fields(config)]
    stated = {name: value for name, value, default in values if value != default}  # fields may be added
    mark = hashlib.blake2b(f"{stated}{reader.prompts}".encode(), digest_size=16)
    mark.update(reader.tokenizer.to_json().encode())
    for name, tensor in sorted(reader.model.state_dict().items()):
        mark.update(f"{name}{tuple(tensor.shape)}{tensor.dtype}".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        mark.update(flat.view(dtype=_bytes()).numpy().data)
    return mark.hexdigest()


def _bytes() -> Any:
    import torch

    return torch.uint8


def stamp_of(folder: Path) -> str | None:
    """A mark of names, sizes and times of a model's files: while it stays, so does the fingerprint."""
    if not folder.is_dir():
        return None
    files = sorted((str(path), path.stat()) for path in folder.resolve().rglob("*") if path.is_file())
    known = [(name, stat.st_size, stat.st_mtime_ns, stat.st_ino) for name, stat in files]
    return hashlib.blake2b(repr(known).encode(errors="surrogateescape"), digest_size=16).hexdigest()


def digest(path: Path) -> bytes:
    """What the content of a file is recognised by."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def is_gone(path: Path) -> bool:
    """Whether there is no such file; one in a folder that may not be looked into is not gone."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def listed(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """One or several paths, from the root of the file system."""
    several = [paths] if isinstance(paths, str | Path) else paths
    return [Path(path).expanduser().absolute() for path in several]


def within(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a path is one of some files, or lies in one of some folders."""
    return any(path == root or root in path.parents for root in roots)


class _Nothing:
    """A bar that nobody sees."""

    total: int | None = None

    def update(self, tokens: int) -> None: ...


@contextmanager
def bar(size: int, shown: bool | None) -> Iterator[Any]:
    """A bar on stderr that counts tokens, on a terminal only if `shown` is None; `size` counts bytes."""
    if shown is False or size == 0:
        yield _Nothing()
        return
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    hide = False if shown else None
    with tqdm(total=max(1, size // 4), unit="tokens", unit_scale=True, disable=hide, smoothing=0.1) as made:
        yield made
