"""A small model that writes, with weights that are not trivial anywhere."""

import torch

from longspan.families.longformer.model import LongformerConfig
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.layout import Layout
from longspan.tasks.registry import build

VOCAB, END = 41, 2
LENGTHS = (23, 1, 9)
DOCUMENTS = Layout.packed(LENGTHS, marked=[[0]] * 3)


def writer(*, positions: int = 31, ending: float = 0.0) -> Seq2SeqLM:
    """A new model, the same each time; `ending` makes the end likelier."""
    encoder = LongformerConfig(
        vocab_size=VOCAB, width=24, layers=1, heads=2, feed_forward=40, radius=5, positions=64, token_types=0
    )
    config = Seq2SeqConfig(encoder=encoder, layers=2, heads=3, feed_forward=40, positions=positions)
    model = build(config, "summarize").eval()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            norm = "norm" in name and name.endswith("weight")
            parameter.copy_(float(norm) + 0.5 * torch.randn(parameter.shape, generator=draw))
        model.head.get_buffer("bias")[0, END] = ending
    return model


def ids() -> torch.Tensor:
    return torch.randint(3, VOCAB, (sum(LENGTHS),), generator=torch.Generator().manual_seed(1))
