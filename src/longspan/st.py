"""Longspan's models inside sentence-transformers: its first module, before Pooling and whatever follows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self, Unpack

import torch
from torch import Tensor

from longspan.checkpoints.save import save_model
from longspan.checkpoints.sentence_transformers import LIMITS, read_modules
from longspan.errors import bad, whole
from longspan.formats.atomic import as_json
from longspan.formats.files import inside, read_json
from longspan.hub import local_folder
from longspan.integrations.common import Model, missing, reader_of
from longspan.layout import Layout
from longspan.pipeline.documents import Document, prepare
from longspan.pipeline.options import ReadingOptions
from longspan.pipeline.run import say_what_is_cut, structure_tags
from longspan.tasks.encode import ENCODE
from longspan.text.encoding import Input

try:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import InputModule
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
except ImportError as error:
    raise missing("sentence-transformers>=6", "sentence-transformers") from error

HERE = "a module of sentence-transformers"
MARKED = "marked"
"""The feature that says which tokens are global or begin a block, where a model has such tokens."""


class Transformer(InputModule):
    """The module that makes token_embeddings: SentenceTransformer(modules=[Transformer(...), Pooling(...)]).

    `model` is a Reader, or what longspan.load() takes, with its options. A text that is longer than the model
    is an error; with overflow="truncate" it is cut, and a warning says how much. Nothing is read in windows
    here. `max_seq_length` is the option `limit`.
    """

    save_in_root = True
    config_file_name = LIMITS
    config_keys = ["max_seq_length", "overflow"]  # noqa: RUF012, as in the base

    def __init__(
        self,
        model: Model = "default",
        *,
        max_seq_length: int | None = None,
        **options: Unpack[ReadingOptions],
    ) -> None:
        super().__init__()
        reader = reader_of(model, **options)
        if reader.options.overflow == "window":
            repair = "One text is one row of features; use Reader.encode() to read in windows."
            raise bad("overflow", f"'error' or 'truncate' in {HERE}", "window", repair)
        self.model, self.tokenizer, self.options = reader.model, reader.tokenizer, reader.options
        if max_seq_length is not None:
            self.max_seq_length = max_seq_length

    @property
    def max_seq_length(self) -> int:
        """Tokens of a text; can be set."""
        return self.model.longest if self.options.limit is None else self.options.limit

    @max_seq_length.setter
    def max_seq_length(self, tokens: int | None) -> None:
        limit = None if tokens is None else whole("max_seq_length", tokens, 1, most=self.model.longest)
        self.options = self.options.but(limit=limit)

    @property
    def overflow(self) -> str:
        """What becomes of longer texts: "error" or "truncate"."""
        return self.options.overflow

    def get_embedding_dimension(self) -> int:
        """The size of a token's vector."""
        return self.model.config.width

    def preprocess(
        self, inputs: Sequence[Input], prompt: str | None = None, **kwargs: object
    ) -> dict[str, Tensor]:
        """Texts, or (text, pair), as {input_ids, attention_mask}, padded; `prompt` comes before each."""
        before = prompt or ""
        texts = [before + one if isinstance(one, str) else (before + one[0], one[1]) for one in inputs]
        names = [f"inputs[{i}]" for i in range(len(texts))]
        documents = prepare(self.model, ENCODE, names, self.tokenizer.encode_many(texts), self.options)
        for name, document in zip(names, documents, strict=True):
            if len(document.pieces) > 1:
                raise bad(name, "read at once", f"{len(document.pieces)} pieces", "Shorten the text.")
        if structure_tags(self.model, self.options.structure, documents) is not None:
            repair = "Load the model with structure='blocks'."
            raise bad("structure", f"'blocks' in {HERE}", "units of the text", repair)
        say_what_is_cut(documents)
        return self._features(documents)

    def forward(self, features: dict[str, Tensor], **kwargs: object) -> dict[str, Tensor]:
        """The features with token_embeddings (B, L, C), 0 where there is padding."""
        mask = features["attention_mask"].bool()
        marked = features.get(MARKED, torch.zeros_like(mask)).bool()
        rows = [marks[row].nonzero()[:, 0].tolist() for marks, row in zip(marked, mask, strict=True)]
        layout = Layout.packed(mask.sum(1).tolist(), marked=rows)
        types = features.get("token_type_ids")
        typed = self.model.config.reads_token_types(self.model.architecture) and types is not None
        x = self.model.backbone(  # (N, C)
            features["input_ids"][mask], layout, types[mask] if typed and types is not None else None
        )
        padded = x.new_zeros(*mask.shape, x.shape[1])  # (N, C) -> (B, L, C)
        padded[mask] = x
        return features | {"token_embeddings": padded}

    def save(
        self, output_path: str, *args: object, safe_serialization: bool = True, **kwargs: object
    ) -> None:
        """Write the model and the tokenizer as Longspan and transformers read them, in safetensors."""
        folder = Path(output_path)
        typed = self.model.config.reads_token_types(self.model.architecture)
        save_model(self.model.backbone, folder)
        self.tokenizer.save(folder, token_types=typed)
        settings = {"max_seq_length": self.max_seq_length, "overflow": self.overflow, "do_lower_case": False}
        (folder / LIMITS).write_text(as_json(settings))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **kwargs: object) -> Self:
        """The module of a folder that `save` wrote."""
        folder = Path(model_name_or_path, subfolder)
        path = folder / LIMITS
        stated = read_json(inside(folder, LIMITS)) if path.is_file() else {}
        overflow = "truncate" if stated.get("overflow") == "truncate" else "error"
        return cls(folder, max_seq_length=stated.get("max_seq_length"), overflow=overflow)

    def _features(self, documents: Sequence[Document]) -> dict[str, Tensor]:
        """One row for each document, padded at its end."""
        pieces = [(each, each.pieces[0].rows) for each in documents]
        shape = len(pieces), max((len(rows) for _, rows in pieces), default=0)
        ids = torch.full(shape, self.tokenizer.pad or 0)
        mask, types, marked = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
        for number, (document, rows) in enumerate(pieces):
            ids[number, : len(rows)] = torch.from_numpy(document.encoding.ids[rows])
            types[number, : len(rows)] = torch.from_numpy(document.encoding.types[rows])
            marked[number, : len(rows)] = torch.from_numpy(document.marked[rows])
            mask[number, : len(rows)] = 1
        features = {"input_ids": ids, "attention_mask": mask}
        if self.model.config.reads_token_types(self.model.architecture):
            features["token_type_ids"] = types
        return features | {MARKED: marked} if marked.any() else features


def load(model: str | Path, **options: Unpack[ReadingOptions]) -> SentenceTransformer:
    """A SentenceTransformer of a folder of sentence-transformers, with Longspan's model in it.

    No code of the folder is run, so `trust_remote_code` is not needed, as it is by SentenceTransformer itself
    for a folder that names this module.
    """
    folder = local_folder(model)
    modules = None if folder is None else read_modules(folder)
    if folder is None or modules is None:
        repair = "Put the modules together: SentenceTransformer(modules=[Transformer(model), Pooling(...)])."
        raise bad("model", "a folder with a modules.json", str(model), repair)
    first = Transformer.load(str(modules.transformer))
    first.options = first.options.but(**options)
    pooling = "cls" if modules.pooling == "first" else modules.pooling
    parts = [first, Pooling(first.get_embedding_dimension(), pooling_mode=pooling)]
    return SentenceTransformer(modules=[*parts, *([Normalize()] if modules.normalize else [])], device="cpu")
