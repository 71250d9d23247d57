"""The attention of LED's encoder in transformers, with Longspan's kernels."""

from transformers.models.led import modeling_led as theirs

from longspan.hf.serving import said
from longspan.hf.window import forward


class LEDEncoderSelfAttention(theirs.LEDEncoderSelfAttention):  # type: ignore[misc]
    """Named as what it takes the place of: some of transformers goes by names of classes."""

    IS_LAYER = True
    forward, extra_repr = forward, said


CLASSES = (LEDEncoderSelfAttention,)
