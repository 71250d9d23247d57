"""Well-known models as configs, so that they can be looked at without a download."""

from longspan.models.bert import BertConfig
from longspan.models.bigbird import BigBirdConfig
from longspan.models.config import EncoderConfig
from longspan.models.etc import bigbird_etc_base, bigbird_etc_large, etc_base, etc_large
from longspan.models.longformer import LongformerConfig
from longspan.models.mpnet import MPNetConfig
from longspan.models.poolingformer import PoolingformerConfig
from longspan.models.stitched import StitchedConfig

PRESETS: dict[str, EncoderConfig] = {
    "default": StitchedConfig(
        width=384, layers=6, feed_forward=1536, block=128, stitching=2, radius=64, salience=True
    ),
    "longformer-base": LongformerConfig(),
    "longformer-large": LongformerConfig(width=1024, layers=24, heads=16, feed_forward=4096),
    "bigbird-base": BigBirdConfig(),
    "bigbird-large": BigBirdConfig(width=1024, layers=24, heads=16, feed_forward=4096),
    "etc-base": etc_base(),
    "etc-large": etc_large(),
    "bigbird-etc-base": bigbird_etc_base(),
    "bigbird-etc-large": bigbird_etc_large(),
    "poolingformer-base": PoolingformerConfig(),
    "bert-base": BertConfig(),
    "roberta-base": BertConfig(vocab_size=50265, position_offset=2, types=1, norm_eps=1e-5, pad_id=1),
    "mpnet-base": MPNetConfig(),
    "minilm-l6": BertConfig(width=384, layers=6, feed_forward=1536),
}
