"""Stitched from a short encoder: all weights as they are."""

from collections.abc import Mapping

from torch import Tensor, nn

from longspan.errors import bad
from longspan.families.config import EncoderConfig
from longspan.families.lengthening import Lengthening, Option, Short
from longspan.families.stitched import sif
from longspan.families.stitched.model import StitchedConfig
from longspan.families.task_model import TaskModel


def config(short: Short, options: Mapping[str, Option]) -> EncoderConfig:
    """The config of the new model: all sizes as they were."""
    old, weights = short.config, _sif_weights(options)
    plain = old.full_attention and not old.buckets
    short.require(plain, "a BERT or RoBERTa that sees everything, for stitched")
    if weights is not None and not (isinstance(weights, Tensor) and weights.shape == (old.vocab_size,)):
        shape = tuple(weights.shape) if isinstance(weights, Tensor) else weights
        raise bad("sif_weights", f"of shape ({old.vocab_size},), one for each word", shape)
    chosen = {name: options[name] for name in ("radius", "block", "stitching") if name in options}
    same = short.fields(positions=old.positions, head_activation=old.head_activation)
    return StitchedConfig(**same | chosen, sif_weights=weights is not None)


def finish(model: TaskModel, options: Mapping[str, Option]) -> None:
    """Words now count by their SIF weights, which gives another vector than the source's."""
    weights = _sif_weights(options)
    if isinstance(weights, Tensor):
        dtype = model.backbone.word_embeddings.weight.dtype
        model.head.get_submodule("sif").weight = nn.Parameter(weights.to(dtype).reshape(-1, 1))
        vars(model.head)["pooling"] = "sif"


def _sif_weights(options: Mapping[str, Option]) -> Option | None:
    weights = options.get("sif_weights")
    return sif.shipped() if weights == "shipped" else weights


TO_STITCHED = Lengthening(
    name="stitched",
    config=config,
    options={
        "block": "tokens of a block (128)",
        "radius": "tokens seen on each side across blocks (64)",
        "stitching": "how many layers, the last ones, see across blocks (2)",
        "sif_weights": "weights of words in the mean that is a text's vector, (vocab,); shipped: BERT's",
    },
    finish=finish,
    keeps_positions=True,
)
