"""Reading as the text comes: what the windows can still see is kept, and nothing else."""

import numpy as np
import torch
from torch import Tensor

from longspan.engine.labels import UnsignedDistance
from longspan.engine.plan import Plan, plan
from longspan.engine.tiling import TILE
from longspan.families.char_lm.attention import RelativeAttention, rotations, sinusoids
from longspan.families.char_lm.model import CharLM
from longspan.families.task_model import TaskModel, evaluating
from longspan.layout import Layout
from longspan.patterns import Window

PIECE = 1024
"""Characters that are read at once."""
Kind = tuple[int, tuple[int, ...]]
"""How many characters a layer looks back, and by which steps its heads do."""


class Ring:
    """The keys and values of a layer's last `size` rows: a new one takes the place of the oldest."""

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        self._room: tuple[Tensor, Tensor] | None = None

    def update(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Take the next rows (n, H, D), and give what they see: of one row all slots, else rows in order."""
        if self._room is None:
            self._room = k.new_empty(self.size, *k.shape[1:]), v.new_empty(self.size, *v.shape[1:])
        seen = self._room if len(k) == 1 else self._in_order(k, v)
        kept, self.count = min(len(k), self.size), self.count + len(k)
        for room, new in zip(self._room, (k, v), strict=True):
            room[self._last(kept)] = new[-kept:]
        return seen

    def _in_order(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        assert self._room is not None
        before = self._last(self.behind)
        return torch.cat([self._room[0][before], k]), torch.cat([self._room[1][before], v])

    def _last(self, count: int) -> Tensor:
        """Where the last rows are, in order."""
        return torch.arange(self.count - count, self.count) % self.size

    @property
    def behind(self) -> int:
        """How many rows the next one can see."""
        return min(self.count, self.size - 1)


class Stream:
    """A text that is read piece by piece: however long it becomes, a character takes the same time.

    >>> from longspan.families.char_lm.model import CharLMConfig, new_model
    >>> tiny = CharLMConfig(width=8, layers=2, heads=2, feed_forward=16, radius=(2, 4))
    >>> stream = Stream(new_model(tiny))
    >>> stream.read(torch.arange(9)).shape, stream.read(torch.tensor([7])).shape
    (torch.Size([9, 256]), torch.Size([1, 256]))
    """

    def __init__(self, model: TaskModel) -> None:
        assert isinstance(model.backbone, CharLM)
        self._model, self._backbone, self._config = model, model.backbone, model.backbone.config
        self._rings = [Ring(reach + 1) for reach in self._config.reaches]
        self._relative = _relative_keys(model.backbone)
        self._plans: dict[Kind, Plan] = {}
        self.position = 0
        "How many characters were read."

    @torch.no_grad()
    def read(self, ids: Tensor) -> Tensor:
        """The logits (n, vocab) of what follows each of the next characters (n,)."""
        with evaluating(self._model):
            return torch.cat([self._read(piece) for piece in ids.split(PIECE)])

    def _read(self, ids: Tensor) -> Tensor:
        model, rope, layout = self._backbone, self._config.angles, Layout.packed([len(ids)])
        x, plans = model.embeddings(ids, layout), dict[Kind, Plan]()
        positions = self.position + np.arange(len(ids))
        turn = None if rope is None else rotations(rope, self._config.head_size, positions)
        for number, (layer, ring) in enumerate(zip(model.layers, self._rings, strict=True)):
            kind = self._config.radii[number], self._config.dilations[number]
            if kind not in plans:
                plans[kind] = self._next(kind, ring) if len(ids) == 1 else self._piece(number, len(ids))
            places = self._relative[number] if turn is None else turn
            x = layer(x, *model.finished((plans[kind], places)), cache=ring.update)
        self.position += len(ids)
        logits: Tensor = self._model.head(x, layout)
        return logits

    def _piece(self, layer: int, count: int) -> Plan:
        """From some rows to those before them and themselves."""
        c, behind = self._config, self._rings[layer].behind
        queries, keys = Layout.packed([count], start=behind), Layout.packed([behind + count])
        labels = self._labels(c.reaches[layer])
        return plan(c.pattern(layer), queries, keys, heads=c.heads, labels=labels)

    def _next(self, kind: Kind, ring: Ring) -> Plan:
        """From the next row to those before it by their age: a plan that does not change as they move on.

        While there are few of them it is for whole tiles, so that it serves for many steps.
        """
        count = min(-(-(ring.count + 1) // TILE) * TILE, ring.size)
        known = self._plans.get(kind)
        if known is None or known.keys.size != count:
            (radius, dilation), labels = kind, self._labels(ring.size - 1)
            back, ages = Window(left=0, right=radius, dilation=dilation), Layout.packed([count])
            known = plan(back, Layout.packed([1]), ages, heads=self._config.heads, labels=labels)
            self._plans[kind] = known
        age = np.arange(count)
        rows = np.where(age <= ring.count, (ring.count - age) % ring.size, -1)
        return known.gathered(rows, ring.size)

    def _labels(self, reach: int) -> UnsignedDistance | None:
        return None if self._config.angles is not None else UnsignedDistance(reach)


@torch.no_grad()
def _relative_keys(model: CharLM) -> list[Tensor]:
    """The keys (L, H, D) of all distances that each layer sees, where positions are distances."""
    c, made = model.config, list[Tensor]()
    waves = sinusoids(c.reach + 1, c.width).to(model.device) if c.angles is None else None
    for layer, reach in zip(model.layers, c.reaches, strict=True):
        if waves is not None and isinstance(layer.attention, RelativeAttention):
            made.append(layer.attention.relative_keys(waves[: reach + 1]))
    return made
