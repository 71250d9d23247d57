"""Longformer's attention in transformers, with Longspan's kernels."""

from transformers.models.longformer import modeling_longformer as theirs

from longspan.hf.serving import said
from longspan.hf.window import forward


class LongformerSelfAttention(theirs.LongformerSelfAttention):  # type: ignore[misc]
    """Named as what it takes the place of: some of transformers goes by names of classes."""

    IS_LAYER = True
    forward, extra_repr = forward, said


CLASSES = (LongformerSelfAttention,)
