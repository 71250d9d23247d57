"""The tiny models of the snapshot: every family, task and option that changes what is computed or saved.

Their weights are random and nowhere trivial. Longspan writes the folders "own.*", transformers "hf.*", and
"original.*" are as the authors of Longformer wrote theirs.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers
from benchmarks.snapshot.__main__ import TEXTS
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

from longspan.families.registry import presets
from longspan.reader import Reader
from longspan.tasks.registry import build
from longspan.text.tokenizer import Tokenizer

CONFIGS = "longspan.families.{}.model"
"""The module of a family's config."""
SIZES: dict[str, Any] = {"vocab_size": 210, "width": 24, "heads": 2, "layers": 2, "feed_forward": 40}
SIZES |= {"positions": 320, "dropout": 0.0, "attention_dropout": 0.0, "init_std": 0.3}
DROPOUT, BEFORE = {"dropout": 0.1, "attention_dropout": 0.1}, {"token_types": 0, "position_offset": 0}
ETC = {"token_types": 4, "radius": 7, "distance": 3, "relative": 10, "block": 9}
POOLED = {"radius": 3, "wide_radius": 20, "kernel": 6, "stride": 3, "two_level": (0,)}
STITCHED = {"positions": 40, "block": 16, "stitching": 1, "radius": 5}
READERS: dict[str, tuple[str, dict[str, Any]]] = {
    "longformer": ("Longformer", {"radius": (8, 4)}),
    "longformer-dilated": ("Longformer", {"radius": 4, "dilation": (2, (1, 3))}),
    "longformer-shared": ("Longformer", {"radius": 4, "share_global_projections": True}),
    "longformer-biased": ("Longformer", {"radius": (5, 3), "token_types": 0, "buckets": 32}),
    "longformer-dropout": ("Longformer", {"radius": 4, **DROPOUT}),
    "bigbird": ("BigBird", {"block": 4, "random_blocks": 1}),
    "bigbird-uniform": ("BigBird", {"block": 4, "random_blocks": 2, "random": "uniform", **DROPOUT}),
    "bigbird-tf": ("BigBird", {"block": 4, "random_blocks": 2, "random": "tf", "rescale_embeddings": True}),
    "bigbird-causal": ("BigBird", {"causal": True}),
    "bigbird-full": ("BigBird", {"attention_type": "full", "bias": False}),
    "bigbird-biased": ("BigBird", {"block": 4, "random_blocks": 2, "buckets": 32, "head_style": "bert"}),
    "bigbird-unbiased": ("BigBird", {"block": 4, "random_blocks": 0, "full_up_to": 9, "out_bias": False}),
    "bert": ("Bert", {}),
    "bert-window": ("Bert", {"radius": 6}),
    "bert-narrow": ("Bert", {"embedding_size": 10, "head_activation": "relu"}),
    "roberta": ("Roberta", {}),
    "mpnet": ("MPNet", {}),
    "stitched": ("Stitched", STITCHED),
    "stitched-sif": ("Stitched", STITCHED | {"stitching": 2, "sif_weights": True}),
    "etc": ("Etc", ETC),
    "etc-paragraphs": ("Etc", ETC | {"units": "paragraphs", "sharing": "sides", "most_globals": 5}),
    "etc-blocks": ("Etc", ETC | {"units": "blocks", "absolute": True, "sharing": "none", "long_type": 0}),
    "etc-hard": ("Etc", ETC | {"hard_g2l": True, "hard_l2g": True, "share_out": True}),
    "etc-flat": ("Etc", ETC | {"flat": True, "share_feed_forward": False, "embedding_size": 10}),
    "etc-unlabelled": ("Etc", ETC | {"distance": 0, "relative": 0, "hard_g2l": True, **DROPOUT}),
    "etc-no-globals": ("Etc", ETC | {"block": 0, "absolute": True}),
    "poolingformer": ("Poolingformer", POOLED),
    "poolingformer-mean": ("Poolingformer", POOLED | {"pooling": "mean", "two_level": (0, 1)}),
    "poolingformer-biased": ("Poolingformer", POOLED | {"token_types": 0, "buckets": 32}),
    "poolingformer-max": ("Poolingformer", POOLED | {"pooling": "max", "residual": False}),
    "poolingformer-by-head": ("Poolingformer", POOLED | {"delta_by_head": True, "delta_from": "first"}),
    "poolingformer-shared": ("Poolingformer", POOLED | {"delta_shared": True, "delta_from": "mean"}),
    "poolingformer-mix": ("Poolingformer", POOLED | {"mix": True, **DROPOUT}),
    "poolingformer-weights": ("Poolingformer", POOLED | {"share_weights": True}),
    "poolingformer-lite": ("Poolingformer", POOLED | {"mix": True, "share_weights": True}),
}
WRITERS: dict[str, tuple[str, dict[str, Any]]] = {
    "led": ("Longformer", BEFORE | {"radius": (8, 4)}),
    "led-dilated": ("Longformer", BEFORE | DROPOUT | {"radius": 4, "dilation": (1, 2)}),
    "bart-window": ("Bert", BEFORE | {"radius": 6}),
    "pegasus-uniform": ("BigBird", BEFORE | {"block": 4, "random": "uniform", "norm_first": True}),
    "mpnet-decoder": ("MPNet", {}),
    "stitched-decoder": ("Stitched", STITCHED),
    "etc-decoder": ("Etc", ETC),
    "poolingformer-decoder": ("Poolingformer", BEFORE | POOLED),
}
READS = ("encode", "fill", "classify", "tag", "answer", "choose")
WRITES = ("summarize", "encode", "classify", "answer")
TAILS = {
    "Model": "encode",
    "ForMaskedLM": "fill",
    "ForPreTraining": "fill",
    "ForCausalLM": "fill",
    "ForSequenceClassification": "classify",
    "ForTokenClassification": "tag",
    "ForQuestionAnswering": "answer",
    "ForMultipleChoice": "choose",
    "ForConditionalGeneration": "summarize",
}
"""How classes of transformers end, and what they are for."""
THEIRS: dict[str, Any] = {"vocab_size": 210, "hidden_size": 24, "num_hidden_layers": 2}
THEIRS |= {"num_attention_heads": 3, "intermediate_size": 40, "max_position_embeddings": 320}
THEIRS |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "sep_token_id": 2}
BOTH: dict[str, Any] = {"vocab_size": 210, "d_model": 24, "dropout": 0.0, "max_position_embeddings": 320}
BOTH |= {"encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 40}
BOTH |= {"decoder_layers": 3, "decoder_attention_heads": 2, "decoder_ffn_dim": 56}
LED = {"max_encoder_position_embeddings": 320, "max_decoder_position_embeddings": 320}
PEERS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("Roberta", "XLMRoberta", "Camembert"), THEIRS | {"type_vocab_size": 1}),
    "Bert": THEIRS,
    "MPNet": THEIRS | {"problem_type": "multi_label_classification"},
    "Longformer": THEIRS | {"attention_window": [16, 8], "type_vocab_size": 1},
    "BigBird": THEIRS | {"block_size": 4, "num_random_blocks": 1},
    "Electra": THEIRS | {"embedding_size": 10},
    "DistilBert": THEIRS | {"hidden_dim": 40, "dropout": 0.0, "attention_dropout": 0.0},
    "LED": BOTH | LED | {"attention_window": [8, 16]},
    "Bart": BOTH | {"scale_embedding": True},
    "BigBirdPegasus": BOTH | {"block_size": 4, "num_random_blocks": 1},
}
LOADS: list[tuple[str, str, dict[str, Any]]] = [
    ("own.longformer.encode", "encode", {"precision": "int8"}),
    ("own.longformer.encode", "encode", {"dtype": "bfloat16"}),
    ("own.longformer.encode", "encode", {"global_tokens": [0, 3]}),
    ("own.bigbird.encode", "encode", {"global_tokens": "first"}),
    ("own.etc.encode", "encode", {"structure": "paragraphs"}),
    ("own.led.summarize", "summarize", {"precision": "int8"}),
    ("hf.Bert.Model", "classify", {"labels": ["a", "b", "c"]}),
    ("hf.BigBird.ForMaskedLM", "answer", {}),
    ("hf.Bart.Model", "summarize", {}),
]
ALLENAI: dict[str, Any] = {"attention_mode": "sliding_chunks", "autoregressive": False}
ORIGINALS: dict[str, dict[str, Any]] = {
    "LongformerForMaskedLM": ALLENAI | {"attention_window": [8, 4], "attention_dilation": [1, 2]},
    "LEDForConditionalGeneration": ALLENAI | {"attention_window": [4, 8], "attention_dilation": [1, 1]},
}
"""Classes that allenai's code wrote otherwise, and how it said what they attend to."""
LENGTHENED: dict[str, dict[str, Any]] = {
    "longformer": {"radius": 16},
    "bigbird": {"block": 8},
    "etc": {"radius": 16, "block": 9},
    "poolingformer": {"radius": 16, "two_level": (1,), "wide_radius": 40},
    "stitched": {"radius": 8, "block": 32, "stitching": 1},
}
ONCE: list[tuple[str, dict[str, Any]]] = [
    ("hf.Bert.Model", {"pattern": "longformer", "radius": (16, 9), "positions": "interpolate"}),
    ("hf.Bert.Model", {"pattern": "longformer", "positions": "random"}),
    ("hf.Roberta.Model", {"pattern": "bigbird", "period": 100}),
    ("hf.Roberta.Model", {"pattern": "etc"}),
    ("hf.Bert.Model", {"pattern": "stitched", "sif_weights": 210}),
    ("hf.Longformer.ForMaskedLM", {"pattern": "poolingformer"}),
    ("hf.Electra.ForSequenceClassification", {"pattern": "longformer"}),
    ("hf.DistilBert.Model", {"pattern": "stitched", "block": 24}),
]


@cache
def tokenizer(pad: int) -> Any:
    """Byte-level BPE in RoBERTa's frame where padding is 1, else WordPiece in BERT's."""
    kind: Any = trainers.BpeTrainer if pad == 1 else trainers.WordPieceTrainer
    if pad == 1:
        names = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
        backend = Backend(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
    else:
        names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
        backend = Backend(models.WordPiece(unk_token="[UNK]"))
        backend.normalizer = normalizers.BertNormalizer(lowercase=True)
        backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
        backend.decoder = decoders.WordPiece()
    trainer = kind(vocab_size=200, special_tokens=list(names.values()), show_progress=False)
    backend.train_from_iterator(TEXTS, trainer)  # all its tokens can be told apart in what is written
    return Tokenizer(backend, names | ({"cls": "<s>", "sep": "</s>"} if pad == 1 else {}))


def unsettle(model: torch.nn.Module, task: str) -> None:
    """Move all weights, so that no bias is 0, no norm 1 and no copy equal."""
    spread = 0.3 if task == "summarize" else 0.1
    for tensor in (*model.parameters(), *(one for one in model.buffers() if one.is_floating_point())):
        tensor.data += spread * torch.randn_like(tensor)


def config(kind: str, fields: dict[str, Any]) -> Any:
    return getattr(import_module(CONFIGS.format(kind.lower())), f"{kind}Config")(**SIZES | fields)


def own(home: Path) -> Iterator[tuple[str, str, int]]:
    """Folders that Longspan writes: their names, tasks and padding tokens."""
    writer = import_module(CONFIGS.format("seq2seq")).Seq2SeqConfig
    sizes = {"layers": 2, "heads": 3, "feed_forward": 56, "positions": 320}
    for name, (kind, fields) in (READERS | WRITERS).items():
        encoder = config(kind, fields)
        whole = writer(encoder=encoder, **sizes) if name in WRITERS else encoder
        salient = "sif_weights" in fields
        for task in WRITES if name in WRITERS else ("encode",) if salient else READS:
            options: dict[str, Any] = {"pooling": "sif"} if salient else {}
            if name == "bert" and task == "encode":
                options = {"pooling": "first", "normalize": True, "pooler": True}
            torch.manual_seed(0)
            model = build(whole, task, labels=4, **options).eval()
            unsettle(model, task)
            reader = Reader(
                model,
                tokenizer(encoder.pad_id),
                labels=("B-place", "I-place", "O", "B-name") if task in ("classify", "tag") else (),
                prompts={"query": "ask: ", "document": "text: "} if name == "roberta" else None,
            )
            reader.save(home / f"own.{name}.{task}")
            yield f"own.{name}.{task}", task, encoder.pad_id


def theirs(home: Path) -> Iterator[tuple[str, str, int]]:
    """Folders that transformers writes, and originals made of them."""
    transformers.utils.logging.disable_progress_bar()
    for family, fields in PEERS.items():
        for tail, task in TAILS.items():
            if not hasattr(transformers, family + tail) or (tail == "ForCausalLM" and family != "BigBird"):
                continue
            more: dict[str, Any] = {"is_decoder": True} if tail == "ForCausalLM" else {}
            more |= {"num_labels": 3} if task in ("classify", "tag") else {}
            torch.manual_seed(0)
            settings = getattr(transformers, f"{family}Config")(**fields | more)
            model = getattr(transformers, family + tail)(settings).eval()
            unsettle(model, task)
            if family == "LED" and task == "summarize":
                model.generation_config.update(num_beams=2, max_length=20, no_repeat_ngram_size=3)
            folders: dict[str, dict[str, Any]] = {f"hf.{family}.{tail}": {}}
            if tail == "ForMaskedLM" and family == "Longformer":
                folders["hf.Longformer.shards"] = {"max_shard_size": "20KB"}
            for name, options in folders.items():
                model.save_pretrained(home / name, **options)
            if family + tail in ORIGINALS:
                folders[original(home, family, family + tail, model)] = {}
            if family + tail == "ElectraForPreTraining":  # which does not fill
                task = "encode"
            for name in folders:
                tokenizer(settings.pad_token_id).save(home / name)
                yield name, task, settings.pad_token_id


def original(home: Path, family: str, kind: str, model: Any) -> str:
    """A folder as allenai's code wrote it: windows of one side, and two rows before position 0."""
    state, prefix = {}, "model." if family == "LED" else "roberta."
    for key, tensor in model.state_dict().items():
        rows = 2 if family == "LED" and key.endswith("embed_positions.weight") else 0
        state[re.sub(rf"^{family.lower()}\.", prefix, key)] = torch.cat([tensor[:rows], tensor])
    place = home / f"original.{family}"
    place.mkdir(parents=True)
    torch.save(state, place / "pytorch_model.bin")
    raw = json.loads(model.config.to_json_string(use_diff=False)) | ORIGINALS[kind]
    raw |= {"model_type": "bart" if family == "LED" else "roberta", "architectures": [kind]}
    (place / "config.json").write_text(json.dumps(raw))
    return place.name


def cases(home: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Builds all models in a folder; what is to be tried with them, by name."""
    built = [*own(home), *theirs(home)]
    known: dict[str, dict[str, Any]] = {
        name: {"task": task, "mask": "<mask>" if pad == 1 else "[MASK]"} for name, task, pad in built
    }
    for name, case in known.items():
        yield f"read {name}", {"kind": "read", "folder": name, "options": {}, **case}
    for name, task, options in LOADS:
        case = known[name] | {"kind": "read", "folder": name, "task": task, "options": options}
        yield f"read {name} for {task} {options}", case
    short = [f"hf.{family}.{tail}" for family in ("Bert", "Roberta", "MPNet", "Bart") for tail in TAILS]
    ways = [{"pattern": pattern, **options} for pattern, options in LENGTHENED.items()]
    for name, options in [*((name, way) for name in short for way in ways), *ONCE]:
        if name in known:
            case = known[name] | {"kind": "lengthen", "folder": name, "options": options}
            yield f"lengthen {name} {options}", case
    for name in presets():
        yield f"look {name}", {"kind": "look", "folder": name, "length": 1024}
    for name in known:
        if name.endswith((".encode", ".Model")) or "original" in name:
            yield f"look {name}", {"kind": "look", "folder": name, "length": 96}
