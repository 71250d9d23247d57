"""A model as an ONNX file, in operators that any runtime has: slow, as attention becomes dense, but right."""

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from longspan.engine.plain import PlainAttention, plain_attention
from longspan.engine.plan import Plan
from longspan.errors import InputError, bad, whole
from longspan.families.attention_spec import AttentionSpec
from longspan.families.config import EncoderConfig
from longspan.families.model_plan import ModelPlan
from longspan.families.seq2seq.model import Seq2Seq
from longspan.families.task_model import TaskModel, evaluating
from longspan.formats.atomic import replaced_file
from longspan.layout import Layout
from longspan.nn.quantized import is_quantized
from longspan.nn.sites import Rows

LONGEST = 4096
"""Tokens. Dense scores of longer texts would not fit into the memory of those who run the file."""


def onnx(model: TaskModel, path: str | Path, *, length: int = 512, opset: int = 18) -> None:
    """Write a model for texts of up to `length` tokens: input_ids and attention_mask (1, length) to outputs.

    Texts are padded at their end. Outputs are those of the packed model: of each token (length, ...), 0 at
    padding, or of the text (1, ...).
    """
    if find_spec("onnx") is None:
        raise InputError("`onnx` must be installed to write such files. Run pip install onnx.")
    whole("length", length, 1, most=min(LONGEST, model.longest))
    _refuse(model, length)
    with evaluating(model), torch.no_grad():
        fixed = _Fixed(model, length).eval()
        with (
            plain_attention(fixed.plans) as plain,
            replaced_file(Path(path)) as file,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # of constants, which the plans are meant to be
            fixed.plain = plain
            torch.onnx.export(
                fixed,
                (torch.ones(1, length, dtype=torch.long), torch.ones(1, length, dtype=torch.long)),
                str(file),
                input_names=["input_ids", "attention_mask"],
                output_names=["outputs"],
                opset_version=opset,
                dynamo=False,
            )


class _Fixed(nn.Module):
    """A model for one text of a fixed length, whose last tokens may be padding."""

    plain: PlainAttention

    def __init__(self, model: TaskModel, length: int) -> None:
        super().__init__()
        self.model = model
        layout = model.marked(Layout.packed([length]))
        rows = Rows.of(layout, torch.device("cpu"))
        self.plan = ModelPlan(rows, model.backbone.inputs(layout))
        leaves = pytree.tree_leaves(self.plan.inputs, is_leaf=lambda value: isinstance(value, Plan))
        self.plans = [leaf for leaf in leaves if isinstance(leaf, Plan)]

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        exists = attention_mask[0] != 0
        self.plain.exists = exists
        rows = self.plan.rows._replace(exists=exists, last=exists.sum().view(1) - 1)
        outputs = self.model.packed(input_ids[0], ModelPlan(rows, self.plan.inputs))
        by_token = outputs.shape[0] == len(exists) and len(exists) > 1
        return outputs * exists.unsqueeze(1).to(outputs.dtype) if by_token else outputs


def _refuse(model: TaskModel, length: int) -> None:
    if isinstance(model.backbone, Seq2Seq):
        raise bad(
            "model", "an encoder", "one that writes", "Its decoder has a cache, which no file can hold."
        )
    if is_quantized(model):
        raise bad("model", "of floating-point weights", "int8", "Load it without precision='int8'.")
    if not all(_cut_alike(model.config, length, n) for n in {1, length // 3, length // 2, length - 1} if n):
        raise bad("model", "one in which a text's end changes nothing before it", model.config.family)


def _cut_alike(config: EncoderConfig, length: int, n: int) -> bool:
    """Whether the first n tokens of a long text see each other as if there were no more."""
    long, short = (config.attention(Layout.packed([size])) for size in (length, n))
    pairs = [(a, b) for x, y in zip(long, short, strict=True) for a, b in zip(x, y, strict=True)]
    return all(_same(a, b, n) for a, b in dict.fromkeys(pairs))


def _same(long: AttentionSpec, short: AttentionSpec, n: int) -> bool:
    rows = np.arange(n)
    q, k = rows[:, None], rows[None, :]
    if long.queries.size < n or long.keys.size < n or short.pooled is not None:
        return False
    a = long.pattern.head(0).count(long.queries.sites[q], long.keys.sites[k])
    b = short.pattern.head(0).count(short.queries.sites[q], short.keys.sites[k])
    return bool(np.array_equal(np.broadcast_to(a, (n, n)), np.broadcast_to(b, (n, n))))
