"""The corpus that a recipe trains on: one that is there, or one made of files."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from longspan.corpus.build import DEFAULT, Paths, build_corpus, found_files
from longspan.corpus.store import MANIFEST, PLAN, TOKENIZER, Corpus
from longspan.corpus.texts import Rules, texts
from longspan.corpus.tokenizers import KINDS, train_tokenizer
from longspan.errors import InputError
from longspan.formats.files import read_json
from longspan.text.tokenizer import Tokenizer

LEARNT = 1 << 28
"""Characters that a tokenizer is learnt from, at most."""
VOCABULARY = 32_000


def corpus_of(
    data: str | os.PathLike[str] | Paths,
    out: Path,
    tokenizer: Tokenizer | str | Path | None,
    *,
    vocab_size: int = VOCABULARY,
    rules: Rules = DEFAULT,
    force: bool = False,
    progress: bool | None = None,
) -> Corpus:
    """The corpus in the folder `data`, or one of its files, built in the folder `out`.

    The tokenizer is one, its folder, or "bpe", "wordpiece" or "dna": then it is learnt from the files.
    """
    paths = [data] if isinstance(data, str | os.PathLike) else list(data)
    if len(paths) == 1 and (Path(paths[0]) / MANIFEST).is_file():
        found = Corpus.open(Path(paths[0]))
        if isinstance(tokenizer, Tokenizer):
            found.check(tokenizer)
        return found
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("Several processes cannot build one corpus. Run longspan corpus before.")
    if tokenizer is None:
        kinds = ", ".join(KINDS)
        raise InputError(f"There is no tokenizer. Give a folder that has one, or learn one: {kinds}.")
    learnt = f"{tokenizer}, {vocab_size}" if str(tokenizer) in KINDS else ""
    if isinstance(tokenizer, Tokenizer):
        made = tokenizer
    elif not learnt:
        made = Tokenizer.from_folder(tokenizer)
    elif _noted(out) == learnt and not force:
        made = Tokenizer.from_folder(out / TOKENIZER)  # a run goes on
    else:
        made = train_tokenizer(_some(paths, rules), str(tokenizer), vocab_size)
    return build_corpus(paths, out, made, rules=rules, learnt=learnt, force=force, progress=progress)


def _noted(out: Path) -> object:
    """How the tokenizer of a corpus was learnt that has been begun."""
    return read_json(out / PLAN).get("learnt") if (out / PLAN).is_file() else None


def _some(paths: Iterable[str | os.PathLike[str]], rules: Rules) -> Iterator[str]:
    """The texts of some files, as many as a tokenizer is learnt from."""
    files, _ = found_files(paths)
    total = 0
    for _, text in texts(files, rules):
        if isinstance(text, str):
            yield text
            total += len(text)
            if total > LEARNT:
                return
