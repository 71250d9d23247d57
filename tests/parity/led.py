"""A tiny LED of transformers and ours with the same weights."""

import torch
import transformers

from longspan.families.longformer.model import LongformerConfig
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.seq2seq.model import Seq2SeqConfig
from longspan.tasks.registry import build

VOCAB, WIDTH, HEADS = 61, 24, 3
SELF, ACROSS = "self_attn", "encoder_attn"
COMMON = {
    "attention_norm": ("self_attn_layer_norm",),
    "feed_forward.up": ("fc1",),
    "feed_forward.down": ("fc2",),
    "feed_forward_norm": ("final_layer_norm",),
}
ENCODER = COMMON | {
    "attention.qkv": tuple(f"{SELF}.longformer_self_attn.{name}" for name in ("query", "key", "value")),
    **{
        f"attention.global_{name}": (f"{SELF}.longformer_self_attn.{name}_global",)
        for name in ("query", "key", "value")
    },
    "attention.out": (f"{SELF}.output",),
}
DECODER = COMMON | {
    "attention.qkv": tuple(f"{SELF}.{name}_proj" for name in "qkv"),
    "attention.out": (f"{SELF}.out_proj",),
    "cross.query": (f"{ACROSS}.q_proj",),
    "cross.kv": (f"{ACROSS}.k_proj", f"{ACROSS}.v_proj"),
    "cross.out": (f"{ACROSS}.out_proj",),
    "cross_norm": ("encoder_attn_layer_norm",),
}


def pair(dtype: torch.dtype = torch.float64) -> tuple[transformers.LEDForConditionalGeneration, Seq2SeqLM]:
    """Theirs and ours, in evaluation mode."""
    torch.manual_seed(0)
    config = transformers.LEDConfig(
        vocab_size=VOCAB,
        d_model=WIDTH,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=40,
        decoder_ffn_dim=56,
        max_encoder_position_embeddings=128,
        max_decoder_position_embeddings=64,
        attention_window=[8, 16],
        dropout=0.0,
    )
    theirs = transformers.LEDForConditionalGeneration(config).to(dtype).eval()
    encoder = LongformerConfig(
        vocab_size=VOCAB,
        width=WIDTH,
        layers=2,
        heads=HEADS,
        feed_forward=40,
        positions=128,
        position_offset=0,
        token_types=0,
        radius=(4, 8),
        dropout=0.0,
        attention_dropout=0.0,
    )
    config = Seq2SeqConfig(encoder=encoder, layers=3, heads=HEADS, feed_forward=56, positions=64)
    ours = build(config, "summarize").to(dtype).eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            norm = "norm" in name and name.endswith("weight")
            parameter.normal_(float(norm), 0.5)  # far from trivial: texts that say one word only tell nothing
        theirs.get_buffer("final_logits_bias").normal_()
        state = theirs.state_dict()
        for name, parameter in ours.named_parameters():
            parameter.copy_(torch.cat([state[key] for key in keys(name)]))
        ours.head.get_buffer("bias").copy_(state["final_logits_bias"])
    return theirs, ours


def keys(name: str) -> list[str]:
    """The tensors of transformers that make up our parameter."""
    _, side, part, *rest = name.split(".")
    leaf = rest[-1]
    if part == "embeddings":
        if rest[0] == "words":
            return ["led.shared.weight"]
        table = {"positions": "embed_positions", "norm": "layernorm_embedding"}
        return [f"led.{side}.{table[rest[0]]}.{leaf}"]
    theirs = (ENCODER if side == "encoder" else DECODER)[".".join(rest[1:-1])]
    return [f"led.{side}.layers.{rest[0]}.{one}.{leaf}" for one in theirs]
