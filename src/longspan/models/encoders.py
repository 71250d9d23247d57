"""The encoders by their configs."""

from collections.abc import Callable
from typing import Any

from longspan.models.bert import Bert, BertConfig
from longspan.models.bigbird import BigBird, BigBirdConfig
from longspan.models.config import EncoderConfig
from longspan.models.etc import Etc, EtcConfig
from longspan.models.longformer import Longformer, LongformerConfig
from longspan.models.mpnet import MPNet, MPNetConfig
from longspan.models.poolingformer import Poolingformer, PoolingformerConfig
from longspan.models.stitched import Stitched, StitchedConfig

Encoder = Longformer | BigBird | Bert | MPNet | Stitched | Etc | Poolingformer

ENCODERS: dict[type[EncoderConfig], Callable[[Any], Encoder]] = {
    LongformerConfig: Longformer,
    BigBirdConfig: BigBird,
    BertConfig: Bert,
    MPNetConfig: MPNet,
    StitchedConfig: Stitched,
    EtcConfig: Etc,
    PoolingformerConfig: Poolingformer,
}
