"""Two rows of the threat table with their figures: absurd shapes, and configs that ask for code."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers import peak_growth
from longspan.checkpoints.save import save_model
from longspan.families.longformer.model import LongformerConfig
from longspan.formats.weights import open_weights
from longspan.tasks.registry import build
from malicious.headers import headers


@pytest.mark.parametrize("case", [case for case in headers() if "2^62" in case])
def test_a_shape_of_2_to_the_62_is_refused_in_milliseconds_and_without_memory(
    case: str, tmp_path: Path, refused: Callable[[Callable[[], object]], str]
) -> None:
    (tmp_path / "model.safetensors").write_bytes(headers()[case])
    refused(lambda: dict(open_weights(tmp_path)))  # what is imported on first use is not counted
    with peak_growth() as grown:
        started = time.thread_time()
        refused(lambda: dict(open_weights(tmp_path)))
        seconds = time.thread_time() - started
    assert seconds < 0.01
    assert grown[0] < 5, "MB"


WATCHED = r"""
import json, sys
from pathlib import Path
from longspan.checkpoints.load import load_model

folders = [Path(name) for name in sys.argv[1:]]
load_model(folders[0])  # imports what loading needs
events, watching = [], False
NOISY = ("import", "exec", "compile", "subprocess.", "socket.", "ctypes.", "pickle.find_class", "os.system",
         "os.exec", "os.posix_spawn", "os.fork")
def watch(event, arguments):
    if watching and event.startswith(NOISY):
        events.append(f"{event} {arguments[:1]}")
sys.addaudithook(watch)
for folder in folders[1:]:
    watching = True
    try:
        load_model(folder)
    except ValueError:
        pass
    watching = False
print(json.dumps(events))
"""

ASKING = {
    "CVE-2026-4372, an attention that is fetched": {
        "_attn_implementation": "evil/kernel",
        "_attn_implementation_internal": "evil/kernel",
        "attn_implementation": {"": "evil/kernel:flash"},
    },
    "CVE-2026-5241, a nested config that trusts": {
        "trust_remote_code": True,
        "encoder": {"trust_remote_code": True, "auto_map": {"AutoConfig": "evil--code.Config"}},
        "text_config": {"model_type": "evil", "auto_map": {"AutoConfig": "code.Config"}},
    },
    "CVE-2026-1839, files of a trainer": {"trainer": "training_args.bin"},
    "a map to code": {"auto_map": {"AutoModel": "code.Model"}, "custom_pipelines": {"x": {"impl": "code.P"}}},
}


def test_configs_that_ask_for_code_import_nothing(tmp_path: Path) -> None:
    config = LongformerConfig(
        width=16, layers=1, heads=2, feed_forward=8, vocab_size=30, positions=16, radius=2
    )
    folders = [tmp_path / "good", *(tmp_path / f"bad{i}" for i in range(len(ASKING)))]
    for folder, asked in zip(folders, [{}, *ASKING.values()], strict=True):
        save_model(build(config, "encode"), folder)
        file = folder / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | asked))
        if asked:
            trap = f"open({str(tmp_path / 'executed')!r}, 'w')"
            for name in ("code.py", "modeling_longformer.py", "configuration_longformer.py"):
                (folder / name).write_text(trap)
            for name in ("training_args.bin", "rng_state.pth", "scheduler.pt"):
                (folder / name).write_bytes(b"cposix\nsystem\n(S'touch executed'\ntR.")
    command = [sys.executable, "-W", "error", "-c", WATCHED, *map(str, folders)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == []
    assert not (tmp_path / "executed").exists()
