"""The attention of LED's encoder in transformers, with Longspan's kernels."""

from typing import Any

from torch import Tensor
from transformers.models.led import modeling_led as theirs

from longspan.hf.serving import serves
from longspan.hf.window import attend


class LEDEncoderSelfAttention(theirs.LEDEncoderSelfAttention):  # type: ignore[misc]
    """Named as what it takes the place of: some of transformers goes by names of classes."""

    IS_LAYER = True

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Any = None,
        is_index_masked: Any = None,
        is_index_global_attn: Any = None,
        is_global_attn: Any = None,
        output_attentions: bool = False,
    ) -> tuple[Tensor, ...]:
        if serves(hidden_states) and not output_attentions:
            return (attend(self, hidden_states, is_index_masked, is_index_global_attn),)
        masks = attention_mask, is_index_masked, is_index_global_attn, is_global_attn
        found: tuple[Tensor, ...] = super().forward(hidden_states, *masks, output_attentions)
        return found

    def extra_repr(self) -> str:
        return "computed by longspan"


CLASSES = (LEDEncoderSelfAttention,)
