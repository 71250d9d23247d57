"""Documents in, texts out."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from longspan.errors import bad
from longspan.families.seq2seq.lm import Seq2SeqLM
from longspan.families.task_model import evaluating
from longspan.generation.config import GenerationConfig, tokens_of
from longspan.generation.decoding import DecoderState
from longspan.generation.logits_process import LogitsProcessor
from longspan.generation.search import BeamSearch, Hypothesis, Sampler
from longspan.layout import Layout
from longspan.shapes import IntArray

OnToken = Callable[[int, int], object]
"""Called with the number of a document and its next token; the document's text ends there if it is False."""


@torch.no_grad()
def generate(
    model: Seq2SeqLM,
    ids: Tensor,
    layout: Layout,
    config: GenerationConfig | None = None,
    *,
    generator: torch.Generator | None = None,
    on_token: OnToken | None = None,
    stop: Callable[[], bool] | None = None,
) -> list[list[Hypothesis]]:
    """The texts that a model generates about each document of a layout, best first.

    What is sampled for a document depends on `generator` and the document's number alone, not on its batch
    mates. `on_token` hears every token of each document's only text as soon as it is certain; with beams,
    that is when all that can still win agree on it. `stop` is asked before each step; if it is True, the best
    texts so far are returned.

    >>> from longspan.families.longformer.model import LongformerConfig
    >>> from longspan.families.seq2seq.model import Seq2SeqConfig
    >>> from longspan.nn.heads import LMHead
    >>> sizes = {"vocab_size": 9, "width": 8, "layers": 2, "heads": 2, "feed_forward": 16}
    >>> tiny = LongformerConfig(**sizes, radius=3, token_types=0)
    >>> backbone = Seq2SeqConfig(encoder=tiny, layers=2, heads=2, feed_forward=16).backbone()
    >>> model = Seq2SeqLM(backbone, LMHead(backbone.word_embeddings)).eval()
    >>> config = GenerationConfig(max_new_tokens=7, min_new_tokens=7)
    >>> ((text,),) = generate(model, torch.arange(5), Layout.packed([5]), config)
    >>> len(text.tokens)
    7
    """
    sizes = model.backbone.config
    config = (config or GenerationConfig()).fitting(positions=sizes.positions, vocab=sizes.vocab_size)
    if on_token is not None and config.num_return_sequences > 1:
        repair = "Use num_return_sequences=1."
        raise bad("on_token", "None where several texts are generated", "a function", repair)
    if np.any(np.bincount(layout.sites.document[layout.sites.exists], minlength=layout.documents) == 0):
        raise bad("document", "at least one token long", 0)
    if not layout.documents:
        return []
    assert config.max_new_tokens is not None
    most = layout.documents * max(config.num_beams, config.num_return_sequences) * config.max_new_tokens
    eos = tokens_of(config.eos_token_id) or (sizes.eos_id,)
    start = sizes.start_id if config.decoder_start_token_id is None else config.decoder_start_token_id
    searches = {d: _search(config, start, eos, generator) for d in range(layout.documents)}
    rules = {d: LogitsProcessor(config, eos, words) for d, words in _documents(ids, layout, config)}
    streams = {d: TokenStream(d, on_token) for d in searches}
    with evaluating(model):
        state = DecoderState(model, ids, model.marked(layout), most)
        _generate(state, searches, streams, rules, stop)
    return [streams[d].results(search) for d, search in searches.items()]


def _generate(
    state: DecoderState,
    searches: Mapping[int, "BeamSearch | Sampler"],
    streams: Mapping[int, "TokenStream"],
    rules: Mapping[int, LogitsProcessor],
    stop: Callable[[], bool] | None,
) -> None:
    live = dict(searches)
    while live and not (stop is not None and stop()):
        scores, rows = state.step(live)
        scores = scores.log_softmax(-1) if isinstance(next(iter(live.values())), BeamSearch) else scores
        sizes = [len(search.tokens) for search in live.values()]
        parts = zip(scores.split(sizes), np.split(rows, np.cumsum(sizes)[:-1]), strict=True)
        for (document, search), (part, own) in zip(list(live.items()), parts, strict=True):
            more = search.advance(rules[document](part, search.tokens), own)
            if not streams[document].hear(search, ended=not more) or not more:
                del live[document]


class TokenStream:
    """Hears the tokens of one document's text, each once, as soon as they are certain."""

    def __init__(self, document: int, on_token: OnToken | None) -> None:
        self._document, self._on_token = document, on_token
        self._count, self._cut = 0, False

    def hear(self, search: BeamSearch | Sampler, *, ended: bool) -> bool:
        """Tell of what is new; whether the text is to go on."""
        if self._on_token is None or self._cut:
            return not self._cut
        tokens = search.results()[0].tokens if ended else search.certain().tolist()
        for token in tokens[self._count :]:
            self._count += 1
            if self._on_token(self._document, token) is False:
                self._cut = True
                return False
        return True

    def results(self, search: BeamSearch | Sampler) -> list[Hypothesis]:
        """The texts, the rest of which is told; one that was cut has what was told, and its score before."""
        self.hear(search, ended=True)
        texts = search.results()
        return [Hypothesis(text.tokens[: self._count], text.score) for text in texts] if self._cut else texts


def _documents(ids: Tensor, layout: Layout, config: GenerationConfig) -> list[tuple[int, IntArray | None]]:
    """The number and the tokens of each document, if some rule reads them."""
    if config.encoder_repetition_penalty == 1 and not config.encoder_no_repeat_ngram_size:
        return [(d, None) for d in range(layout.documents)]
    tokens, sites = ids.cpu().numpy(), layout.sites
    return [(d, tokens[sites.exists & (sites.document == d)]) for d in range(layout.documents)]


def _search(
    config: GenerationConfig, start: int, eos: tuple[int, ...], generator: torch.Generator | None
) -> BeamSearch | Sampler:
    own = None
    if config.do_sample:
        own = torch.Generator().manual_seed(int(torch.randint(2**63 - 1, (), generator=generator)))
    return (BeamSearch if config.num_beams > 1 else Sampler)(config, start, eos, own)
