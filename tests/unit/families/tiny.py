"""Small models of every family, with weights that are not trivial anywhere."""

from typing import Any

import torch
from torch import Tensor, nn

from longspan.families.backbone import Encoder
from longspan.families.bert.model import BertConfig
from longspan.families.bigbird.model import BigBirdConfig
from longspan.families.config import EncoderConfig
from longspan.families.eurobert.model import EuroBertConfig
from longspan.families.gemma3.model import Gemma3Config
from longspan.families.gte.model import GteConfig
from longspan.families.jina_bert.model import JinaBertConfig
from longspan.families.jina_embeddings_v3.model import JinaEmbeddingsV3Config
from longspan.families.longformer.model import LongformerConfig
from longspan.families.modernbert.model import ModernBertConfig
from longspan.families.mpnet.model import MPNetConfig
from longspan.families.nomic_bert.model import NomicBertConfig
from longspan.nn.rope import RopeParameters

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
YARN = RopeParameters(rope_type="yarn", factor=3.0, original_max_position_embeddings=100)
KINDS = ("sliding_attention", "full_attention", "sliding_attention")
UNMARKED = (
    "bert",
    "windowed",
    "embedding_size",
    "mpnet",
    "causal",
    "modernbert",
    "biased modernbert",
    "eurobert",
    "grouped",
    "gemma3",
    *("nomic", "nomic far", "gte", "jina v3", "jina"),
)
"""Models to which a mark means nothing."""


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
        "modernbert": ModernBertConfig(**SIZES, radius=5),
        "biased modernbert": ModernBertConfig(
            **SIZES, radius=5, norm_bias=True, attention_bias=True, feed_forward_bias=True, rope=YARN
        ),
        "eurobert": EuroBertConfig(**SIZES),
        "grouped": EuroBertConfig(**SIZES | {"heads": 6}, kv_heads=2, head_dim=10),
        "gemma3": Gemma3Config(**SIZES, radius=5, head_dim=10, query_scalar=7.0, layer_types=KINDS),
        "biased longformer": LongformerConfig(**SIZES, radius=(5, 3, 8), token_types=0, buckets=32),
        "biased bigbird": BigBirdConfig(**SIZES, block=4, random_blocks=2, buckets=32),
        **modern(),
    }


def modern() -> dict[str, EncoderConfig]:
    """Those whose positions are no table: angles, or scores that fall with the distance."""
    far = RopeParameters(rope_type="dynamic", factor=2.0, original_max_position_embeddings=50)
    return {
        "nomic": NomicBertConfig(**SIZES),
        "nomic far": NomicBertConfig(**SIZES, trained_positions=50, rope=far),
        "gte": GteConfig(**SIZES),
        "jina v3": JinaEmbeddingsV3Config(**SIZES),
        "jina": JinaBertConfig(**SIZES),
    }


def body(config: EncoderConfig, dtype: torch.dtype = torch.float32) -> Encoder:
    """The model of a config, ready to evaluate; biases and norms are not those of a new model."""
    torch.manual_seed(0)
    model = config.backbone()
    assert isinstance(model, Encoder)
    unsettle(model)
    return model.to(dtype).eval()


def unsettle(model: nn.Module) -> None:
    """Move every weight a little, so that no bias is 0, no norm 1 and no copy equal."""
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)


def some_ids(count: int, seed: int = 1) -> Tensor:
    """Token ids that are not padding."""
    return torch.randint(3, 53, (count,), generator=torch.Generator().manual_seed(seed))
