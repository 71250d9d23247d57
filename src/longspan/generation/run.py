"""Documents read once, texts written step by step; all that are still being written take a step together."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from longspan.engine.plan import plan
from longspan.errors import bad
from longspan.generation.options import Writing
from longspan.generation.rules import ruled
from longspan.generation.search import Beams, Draws, Text
from longspan.layout import Layout
from longspan.models.seq2seq import Seq2Seq
from longspan.nn.decoder import Looks, Rows, Seen
from longspan.patterns import Full
from longspan.shapes import IntArray

Told = Callable[[int, int], object]
"""Called with the number of a document and its next token; the document's text ends if it returns False."""


@torch.no_grad()
def generate(
    model: Seq2Seq,
    ids: Tensor,
    layout: Layout,
    options: Writing | None = None,
    *,
    generator: torch.Generator | None = None,
    told: Told | None = None,
) -> list[list[Text]]:
    """The texts that a model writes about each document of a layout, best first.

    What is drawn for a document depends on `generator` and the document's number alone, not on its mates.
    `told` hears of tokens as they come, where one text is written for each document and no beams compete.

    >>> from longspan.models.longformer import LongformerConfig
    >>> from longspan.models.seq2seq import Seq2SeqConfig
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3, types=0)
    >>> model = Seq2Seq(Seq2SeqConfig(encoder=tiny, layers=2, heads=2, feed_forward=16)).eval()
    >>> ((text,),) = generate(model, torch.arange(5), Layout.packed([5]), Writing(longest=7, shortest=7))
    >>> len(text.tokens)
    7
    """
    options = options or Writing()
    config = model.config
    longest = config.positions if options.longest is None else options.longest
    if longest > config.positions:
        raise bad("longest", f"at most {config.positions}, as many as there are positions", longest)
    if told is not None and (options.beams > 1 or options.count > 1):
        raise bad("told", "None where several texts are followed", "a function", "Use beams=1 and count=1.")
    if np.any(np.bincount(layout.sites.document[layout.sites.exists], minlength=layout.documents) == 0):
        raise bad("document", "at least one token long", 0)
    seen = [_by_head(one) for one in model.decoder.seen(model.encoder(ids, layout))]
    past = [Rows() for _ in seen]
    searches = {d: _search(options, model, longest, generator) for d in range(layout.documents)}
    live, kept = dict(searches), 0
    while live:
        each = list(live.values())
        rows = kept + np.arange(sum(len(one.tokens) for one in each))
        kept += len(rows)
        looks = _looks(live, layout, rows, kept, config.heads)
        place = Layout.packed([1] * len(rows), start=each[0].tokens.shape[1] - 1)
        last = torch.from_numpy(np.concatenate([one.tokens[:, -1] for one in each])).to(ids.device)
        scores = model.scores(model.decoder(last, place, seen, looks, past)).float().cpu()
        scores = scores.log_softmax(-1) if options.beams > 1 else scores
        sizes = [len(one.tokens) for one in each]
        parts = zip(
            list(live.items()), scores.split(sizes), np.split(rows, np.cumsum(sizes)[:-1]), strict=True
        )
        for (document, one), part, own in parts:
            part = ruled(part, one.tokens, options, eos=config.eos_id, longest=longest)
            more = one.advance(part, own)
            if told is not None and isinstance(one, Draws):
                more = told(document, one.newest) is not False and more
            if not more:
                del live[document]
    return [searches[d].results() for d in range(layout.documents)]


def _search(
    options: Writing, model: Seq2Seq, longest: int, generator: torch.Generator | None
) -> Beams | Draws:
    config = model.config
    if options.beams > 1:
        return Beams(options, config.start_id, config.eos_id, longest)
    own = None
    if options.sample:
        own = torch.Generator().manual_seed(int(torch.randint(2**63 - 1, (), generator=generator)))
    return Draws(options, config.start_id, config.eos_id, longest, own)


def _looks(live: dict[int, Beams | Draws], layout: Layout, rows: IntArray, kept: int, heads: int) -> Looks:
    """Each text sees its own rows, wherever they are kept, and all that was read of its document."""
    before = np.concatenate([one.rows for one in live.values()])
    own = np.concatenate([before, rows[:, None]], axis=1)  # (R, n) -> (R, n + 1)
    count, length = own.shape
    back = plan(Full(), Layout.packed([1] * count), Layout.packed([length] * count), heads=heads)
    texts = Layout.packed([len(live[d].tokens) if d in live else 0 for d in range(layout.documents)])
    return Looks(back.gathered(own.reshape(-1), kept), plan(Full(), texts, layout, heads=heads))


def _by_head(seen: Seen) -> Seen:
    """The same keys and values (K, H, D), those of a head side by side in memory, as steps read them."""
    k, v = (part.transpose(0, 1).contiguous().transpose(0, 1) for part in seen)
    return k, v
