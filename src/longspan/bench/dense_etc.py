"""ETC as one would write it in plain torch: all pairs are scored, and masks take most of them away."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from longspan.families.etc.layers import Relative, TwoStreamLayer
from longspan.families.etc.model import Etc
from longspan.layout import Layout
from longspan.structure.structure import Structure


class DenseEtc(nn.Module):
    """The same weights and the same definition; masks and labels of all pairs (N + G, N + G) are made once.

    `fused` gives the scores of labels as a mask to torch's F.scaled_dot_product_attention; without it all is
    done by batched products.
    """

    def __init__(self, model: Etc, *, fused: bool) -> None:
        super().__init__()
        if model.config.sharing != "none" or model.config.labels is None:
            raise ValueError("only the ETC of the paper, whose streams share no projections")
        self.model, self.fused = _plain(model), fused

    def forward(self, ids: Tensor, layout: Layout) -> Tensor:
        """ids (N,) of one document to hidden states (N, C)."""
        config = self.model.config
        structure = config.structure(layout)
        pairs = self.pairs(structure)
        x = self.model.embeddings(ids, self.model.embeddings.rows(structure))
        for layer in self.model.layers:
            assert isinstance(layer, TwoStreamLayer)
            x = self._layer(layer, x, layout.size, pairs)
        long: Tensor = x[: layout.size]
        return long

    def pairs(self, structure: Structure) -> list[tuple[Tensor, Tensor]]:
        """For each stream which pairs are seen, and their labels: (N or G, N + G)."""
        streams = []
        config = self.model.config
        for call in config.stream_specs(structure):
            q, k = call.queries.sites[:, None], call.keys.sites[None, :]
            seen = torch.from_numpy(call.pattern.count(q, k) > 0)
            assert config.labels is not None
            streams.append((seen, torch.from_numpy(config.labels.label(q, k)).long()))
        return streams

    def _layer(self, layer: TwoStreamLayer, x: Tensor, n: int, pairs: list[tuple[Tensor, Tensor]]) -> Tensor:
        a = layer.attention
        q, k, v, other_k, other_v = self._heads(a.from_long(x[:n]))
        global_q, global_k, global_v, seen_k, seen_v = self._heads(a.from_global(x[n:]))
        assert a.long_relative is not None
        assert a.global_relative is not None
        assert a.global_out is not None
        long = self._attend(q, (k, seen_k), (v, seen_v), a.long_relative, *pairs[0])
        top = self._attend(global_q, (other_k, global_k), (other_v, global_v), a.global_relative, *pairs[1])
        x = torch.cat(
            [
                layer.attention_norm(x[:n] + a.out(long)),
                layer.global_attention_norm(x[n:] + a.global_out(top)),
            ]
        )
        inner = layer.feed_forward
        return layer.feed_forward_norm(x + inner.down(inner.act(inner.up(x))))  # type: ignore[no-any-return]

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(len(x), 5, self.model.config.heads, -1).permute(1, 2, 0, 3)  # (N, 5C) -> (5, H, N, D)

    def _attend(
        self,
        q: Tensor,
        keys: tuple[Tensor, Tensor],
        values: tuple[Tensor, Tensor],
        relative: Relative,
        seen: Tensor,
        labels: Tensor,
    ) -> Tensor:
        k, v = torch.cat(keys, 1), torch.cat(values, 1)  # (H, N + G, D)
        by_label = q @ relative.keys.permute(1, 2, 0) + relative.bias.t()[:, None]  # (H, N, labels)
        scores = by_label.gather(2, labels.expand(len(q), *labels.shape))
        if self.fused:
            bias = (scores * q.shape[2] ** -0.5).masked_fill(~seen, -torch.inf)
            context = F.scaled_dot_product_attention(q[None], k[None], v[None], bias[None])[0]
        else:
            scores = (scores + q @ k.transpose(1, 2)) * q.shape[2] ** -0.5
            context = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v
        return context.transpose(0, 1).flatten(1)  # (H, N, D) -> (N, C)


class _TorchLinear(nn.Linear):
    """A layer that is called: our core computes those of torch's very class."""


def _plain(model: Etc) -> Etc:
    """`model` itself, whose linear layers torch computes."""
    for part in model.modules():
        if type(part) is nn.Linear:
            part.__class__ = _TorchLinear
    return model
