"""Models with a decoder: one writes texts about documents, one reads each document a second time."""

from dataclasses import replace

from torch import Tensor, nn

from longspan.layout import Layout
from longspan.models.longformer import LongformerConfig
from longspan.models.seq2seq import Decoder, Seq2Seq, shifted
from longspan.models.task import TaskModel
from longspan.nn.heads import NextWordHead
from longspan.nn.word_loss import word_loss


class Writer(TaskModel):
    """Documents and what was written about them so far, to scores of all words for what comes next.

    >>> import torch
    >>> from longspan.models.build import build
    >>> from longspan.models.longformer import LongformerConfig
    >>> from longspan.models.seq2seq import Seq2SeqConfig
    >>> tiny = LongformerConfig(vocab_size=9, width=8, layers=2, heads=2, feed_forward=16, radius=3, types=0)
    >>> model = build(Seq2SeqConfig(encoder=tiny, layers=2, heads=2, feed_forward=16), "summarise").eval()
    >>> documents, texts = Layout.packed([5, 4], marked=[[0], [0]]), Layout.packed([2, 3])
    >>> model(torch.arange(9), documents, torch.arange(5), texts).shape
    torch.Size([5, 9])
    """

    body: Seq2Seq
    head: NextWordHead

    def __init__(self, body: Seq2Seq, head: NextWordHead) -> None:
        super().__init__(body, head, "summarise")

    @property
    def encoder(self) -> nn.Module:
        return self.body.encoder

    @property
    def decoder(self) -> Decoder:
        return self.body.decoder

    def forward(self, ids: Tensor, layout: Layout, written: Tensor, texts: Layout) -> Tensor:  # type: ignore[override]
        """Scores of all words for the place behind each row of `written` (N,): (N, vocab)."""
        return self.scores(self.hidden(ids, layout, written, texts))

    def hidden(self, ids: Tensor, layout: Layout, written: Tensor, texts: Layout) -> Tensor:
        """What the decoder makes of the texts `written` about the documents: (N, C)."""
        return self.body.written(self.body(ids, layout), layout, written, texts)

    def scores(self, x: Tensor) -> Tensor:
        """(N, C) -> (N, vocab)."""
        found: Tensor = self.head(x)
        return found

    def usual(self, layout: Layout) -> Layout:
        """The documents with their first tokens global, where nothing is marked and the encoder is LED's.

        So LED was trained.
        """
        if layout.marked_rows.size or not isinstance(self.config, LongformerConfig):
            return layout
        site = layout.sites
        return Layout(replace(site, marked=site.exists & (site.position == 0)), layout.lengths)

    def loss(
        self,
        ids: Tensor,
        layout: Layout,
        labels: Tensor,
        texts: Layout,
        *,
        smoothing: float = 0.0,
        global_first: bool = True,
    ) -> Tensor:
        """The mean cross entropy of the `labels` (N,), the words of the texts; -100 is not learnt.

        Where no token is marked, the first of each document is global in a LED, unless `global_first` is
        False.

        The scores of few rows stand in memory at once.
        """
        layout = self.usual(layout) if global_first else layout
        x = self.hidden(ids, layout, shifted(labels, texts, self.body.config), texts)
        return word_loss(x, self.head.decoder.weight, self.head.bias[0], labels, smoothing=smoothing)


class Rereader(TaskModel):
    """A document is read, then read again by the decoder, one place on; so BART answers and classifies."""

    body: Seq2Seq

    @property
    def longest(self) -> int:
        return min(self.config.longest, self.body.config.positions)

    def forward(self, ids: Tensor, layout: Layout, types: Tensor | None = None) -> Tensor:
        again = shifted(ids, layout, self.body.config)
        x = self.body.written(self.body(ids, layout, types), layout, again, layout)
        found: Tensor = self.head(x, layout)
        return found
