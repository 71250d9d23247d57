"""Documents in, texts out."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor

from longspan.errors import bad
from longspan.generation.options import Writing
from longspan.generation.rules import ruled
from longspan.generation.search import Beams, Draws, Text
from longspan.generation.steps import Steps
from longspan.layout import Layout
from longspan.models.seq2seq import Seq2SeqConfig
from longspan.models.task import evaluating
from longspan.models.writer import Writer

Told = Callable[[int, int], object]
"""Called with the number of a document and its next token; the document's text ends there if it is False."""


@torch.no_grad()
def generate(
    model: Writer,
    ids: Tensor,
    layout: Layout,
    options: Writing | None = None,
    *,
    generator: torch.Generator | None = None,
    told: Told | None = None,
    stop: Callable[[], bool] | None = None,
    global_first: bool = True,
) -> list[list[Text]]:
    """The texts that a model writes about each document of a layout, best first; nothing is dropped.

    Where no token is marked, the first of each document is global in a LED, unless `global_first` is False.

    What is drawn for a document depends on `generator` and the document's number alone, not on its mates.
    `told` hears every token of the text of each document, `count` being 1, as soon as it is certain: with
    beams that is when all that can still win agree on it. `stop` is asked before each step; if it is True,
    the best texts so far are returned.

    >>> from longspan.models.build import build
    >>> from longspan.models.longformer import LongformerConfig
    >>> from longspan.models.seq2seq import Seq2SeqConfig
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3, types=0)
    >>> model = build(Seq2SeqConfig(encoder=tiny, layers=2, heads=2, feed_forward=16), "summarise").eval()
    >>> ((text,),) = generate(model, torch.arange(5), Layout.packed([5]), Writing(longest=7, shortest=7))
    >>> len(text.tokens)
    7
    """
    config = model.body.config
    options = (options or Writing()).fitting(positions=config.positions, vocab=config.vocab_size)
    if told is not None and options.count > 1:
        raise bad("told", "None where several texts are written", "a function", "Use count=1.")
    if np.any(np.bincount(layout.sites.document[layout.sites.exists], minlength=layout.documents) == 0):
        raise bad("document", "at least one token long", 0)
    if not layout.documents:
        return []
    assert options.longest is not None
    most = layout.documents * max(options.beams, options.count) * options.longest
    searches = {d: _search(options, config, generator) for d in range(layout.documents)}
    listeners = {d: Listener(d, told) for d in searches}
    with evaluating(model):
        steps = Steps(model, ids, model.usual(layout) if global_first else layout, most)
        _write(steps, searches, listeners, options, config.eos_id, stop)
    return [listeners[d].results(search) for d, search in searches.items()]


def _write(
    steps: Steps,
    searches: Mapping[int, "Beams | Draws"],
    listeners: Mapping[int, "Listener"],
    options: Writing,
    eos: int,
    stop: Callable[[], bool] | None,
) -> None:
    live = dict(searches)
    while live and not (stop is not None and stop()):
        scores, rows = steps.take(live)
        scores = scores.log_softmax(-1) if options.beams > 1 else scores
        sizes = [len(search.tokens) for search in live.values()]
        parts = zip(scores.split(sizes), np.split(rows, np.cumsum(sizes)[:-1]), strict=True)
        for (document, search), (part, own) in zip(list(live.items()), parts, strict=True):
            more = search.advance(ruled(part, search.tokens, options, eos=eos), own)
            if not listeners[document].hear(search, ended=not more) or not more:
                del live[document]


class Listener:
    """Hears the tokens of one document's text, each once, as soon as they are certain."""

    def __init__(self, document: int, told: Told | None) -> None:
        self._document, self._told = document, told
        self._count, self._cut = 0, False

    def hear(self, search: Beams | Draws, *, ended: bool) -> bool:
        """Tell of what is new; whether the text is to go on."""
        if self._told is None or self._cut:
            return not self._cut
        tokens = search.results()[0].tokens if ended else search.certain().tolist()
        for token in tokens[self._count :]:
            self._count += 1
            if self._told(self._document, token) is False:
                self._cut = True
                return False
        return True

    def results(self, search: Beams | Draws) -> list[Text]:
        """The texts, the rest of which is told; one that was cut has what was told, and its score before."""
        self.hear(search, ended=True)
        found = search.results()
        return [Text(text.tokens[: self._count], text.score) for text in found] if self._cut else found


def _search(options: Writing, config: Seq2SeqConfig, generator: torch.Generator | None) -> Beams | Draws:
    if options.beams > 1:
        return Beams(options, config.start_id, config.eos_id)
    own = None
    if options.sample:
        own = torch.Generator().manual_seed(int(torch.randint(2**63 - 1, (), generator=generator)))
    return Draws(options, config.start_id, config.eos_id, own)
