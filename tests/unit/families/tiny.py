"""Small models of every family, with weights that are not trivial anywhere."""

from typing import Any

import torch
from torch import Tensor, nn

from longspan.families.bert.model import Bert, BertConfig
from longspan.families.bigbird.model import BigBird, BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.longformer.model import Longformer, LongformerConfig
from longspan.families.mpnet.model import MPNet, MPNetConfig

SIZES: dict[str, Any] = {
    "vocab_size": 53,
    "width": 24,
    "layers": 3,
    "heads": 2,
    "feed_forward": 40,
    "positions": 300,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}


def configs() -> dict[str, EncoderConfig]:
    """One config for each family and option that changes what is computed."""
    return {
        "longformer": LongformerConfig(**SIZES, radius=(5, 3, 8)),
        "dilated": LongformerConfig(**SIZES, radius=4, dilation=(1, (1, 3), 2)),
        "shared": LongformerConfig(**SIZES, radius=4, share_global_projections=True),
        "bigbird": BigBirdConfig(**SIZES, block=4, random_blocks=2),
        "uniform": BigBirdConfig(**SIZES, block=4, random_blocks=2, random="uniform"),
        "causal": BigBirdConfig(**SIZES, causal=True),
        "bert": BertConfig(**SIZES),
        "windowed": BertConfig(**SIZES, radius=6),
        "embedding_size": BertConfig(**SIZES, embedding_size=10),
        "mpnet": MPNetConfig(**SIZES),
        "biased longformer": LongformerConfig(**SIZES, radius=(5, 3, 8), token_types=0, buckets=32),
        "biased bigbird": BigBirdConfig(**SIZES, block=4, random_blocks=2, buckets=32),
    }


def body(config: EncoderConfig, dtype: torch.dtype = torch.float32) -> Longformer | BigBird | Bert | MPNet:
    """The model of a config, ready to evaluate; biases and norms are not those of a new model."""
    torch.manual_seed(0)
    kinds: dict[type[EncoderConfig], Any] = {
        LongformerConfig: Longformer,
        BigBirdConfig: BigBird,
        BertConfig: Bert,
        MPNetConfig: MPNet,
    }
    model: Longformer | BigBird | Bert | MPNet = kinds[type(config)](config)
    unsettle(model)
    return model.to(dtype).eval()


def unsettle(model: nn.Module) -> None:
    """Move every weight a little, so that no bias is 0, no norm 1 and no copy equal."""
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)


def some_ids(count: int, seed: int = 1) -> Tensor:
    """Token ids that are not padding."""
    return torch.randint(3, 53, (count,), generator=torch.Generator().manual_seed(seed))
