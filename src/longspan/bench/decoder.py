"""A decoder with a window, as Mistral's, inside transformers: by torch's attention and by ours."""

from dataclasses import dataclass, replace

import torch

from longspan.bench.bars import Bar, of_peak, times
from longspan.bench.jobs import KEEP_PAGES
from longspan.bench.measure import Run
from longspan.bench.modern import INSIDE, KEPT, PEER
from longspan.bench.peers import need_transformers

PROMPT, STEPS = 2048, 32


@dataclass(frozen=True, kw_only=True)
class DecoderJob:
    """Reading a prompt at once, or writing some tokens behind one; float32, random weights."""

    who: str = INSIDE
    """"longspan in transformers", or "transformers" with its sdpa."""
    lengths: tuple[int] = (16_384,)
    writes: bool = False
    layers: int = 8
    window: int = 1024
    training: bool = False
    keep_pages: bool = False
    warm_up: bool = True

    @property
    def family(self) -> str:
        """What is run."""
        return "mistral"

    @property
    def environment(self) -> dict[str, str]:
        """What its process needs besides the environment of this one."""
        return KEEP_PAGES if self.keep_pages else {}

    def __call__(self) -> Run:
        need_transformers()
        import transformers

        import longspan.hf  # noqa: F401  (registers the attention)

        transformers.logging.set_verbosity_error()
        config = transformers.MistralConfig(
            vocab_size=8192,
            hidden_size=512,
            intermediate_size=1792,
            num_hidden_layers=self.layers,
            num_attention_heads=8,
            num_key_value_heads=2,
            sliding_window=self.window,
            max_position_embeddings=32_768,
        )
        how = "longspan" if self.who == INSIDE else "sdpa"
        model = transformers.AutoModel.from_config(config, attn_implementation=how).eval()
        ids = torch.randint(5, 8192, (1, *self.lengths), generator=torch.Generator().manual_seed(0))
        if not self.writes:
            return Run(lambda: model(input_ids=ids, use_cache=False))
        with torch.no_grad():
            cache = model(input_ids=ids, use_cache=True).past_key_values

        def write() -> None:
            for _ in range(STEPS):
                model(input_ids=ids[:, :1], past_key_values=cache, use_cache=True)

        return Run(write)


def cases() -> tuple[tuple[str, dict[str, DecoderJob], tuple[Bar, ...]], ...]:
    """Prefill and decoding: names, jobs and bars."""
    prefill, writing = DecoderJob(), DecoderJob(lengths=(PROMPT,), writes=True)
    of_memory = (of_peak(PEER, None, run=INSIDE),)
    return (
        ("mistral-prefill", _jobs(prefill), (*_bars(3.0), *of_memory)),
        ("mistral-decode", _jobs(writing), _bars(1.0)),
    )


def _jobs(ours: DecoderJob) -> dict[str, DecoderJob]:
    peer = replace(ours, who=PEER)
    return {INSIDE: ours, PEER: peer, PEER + KEPT: replace(peer, keep_pages=True)}


def _bars(bar: float) -> tuple[Bar, ...]:
    return times(PEER, bar, run=INSIDE), times(PEER + KEPT, None, run=INSIDE)
