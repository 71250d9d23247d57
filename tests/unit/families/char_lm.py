"""Small language models of bytes, and their formula written out."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from longspan.families.char_lm.model import CharLMConfig, new_model
from longspan.families.task_model import TaskModel
from longspan.layout import Layout

BOTH = ("rotary", "relative")


def config(position_type: str = "rotary", **changes: Any) -> CharLMConfig:
    """Three layers, of which two have a dilated head."""
    sizes: dict[str, Any] = {"width": 12, "layers": 3, "heads": 2, "feed_forward": 20}
    windows: dict[str, Any] = {"radius": (3, 7, 5), "dilation": (1, (1, 2), (3, 1))}
    return CharLMConfig(**sizes | windows | {"position_type": position_type} | changes)


def model(position_type: str = "rotary", dtype: torch.dtype = torch.float32, **changes: Any) -> TaskModel:
    """With weights that are not trivial anywhere, in evaluation."""
    torch.manual_seed(0)
    made = new_model(config(position_type, **changes))
    for parameter in made.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return made.to(dtype).eval()


def some_ids(count: int, seed: int = 1, most: int = 256) -> Tensor:
    return torch.randint(most, (count,), generator=torch.Generator().manual_seed(seed))


def written_out(made: TaskModel, ids: Tensor) -> Tensor:
    """The logits of one text in plain torch, pair by pair, as the papers have them."""
    body: Any = made.backbone
    c, n = body.config, len(ids)
    x = body.embeddings.words(ids) * c.width**0.5
    for number, layer in enumerate(body.layers):
        y = norm(layer.attention_norm, x)
        q, k, v = (y @ layer.attention.qkv.weight.T).view(n, 3, c.heads, -1).unbind(1)
        context = torch.zeros(n, c.heads, c.head_size, dtype=x.dtype)
        for head in range(c.heads):
            gap = c.dilations[number][head]
            for i in range(n):
                seen = [i - gap * t for t in range(c.radii[number] + 1) if i - gap * t >= 0]
                scores = torch.stack([score(body, layer, q, k, head, i, j) for j in seen])
                context[i, head] = scores.softmax(0) @ v[seen, head]
        x = x + context.flatten(1) @ layer.attention.out.weight.T
        inner = layer.feed_forward
        x = x + inner.down(nn.functional.gelu(inner.up(norm(layer.feed_forward_norm, x))))
    if c.closing_norm:
        x = norm(body.layers[-1].closing_norm, x)
    logits: Tensor = x @ body.embeddings.words.weight.T + made.head.get_parameter("decoder.bias")
    return logits


def norm(layer: Any, x: Tensor) -> Tensor:
    return nn.functional.layer_norm(x, (x.shape[1],), layer.weight, layer.bias, layer.eps)


def score(body: Any, layer: Any, q: Tensor, k: Tensor, head: int, i: int, j: int) -> Tensor:
    """Transformer-XL: ((q + u) . k + (q + v) . W_R R(i - j)) / sqrt(D); rotary: angles by the distance."""
    c = body.config
    if c.position_type == "relative":
        powers = 10_000 ** (torch.arange(0, c.width, 2, dtype=q.dtype) / c.width)
        wave = torch.cat([((i - j) / powers).sin(), ((i - j) / powers).cos()])
        far = (layer.attention.relative.weight @ wave).view(c.heads, -1)[head]
        u, v = body.content_bias[head], body.position_bias[head]
        found: Tensor = ((q[i, head] + u) @ k[j, head] + (q[i, head] + v) @ far) / c.head_size**0.5
        return found
    a, b = q[i, head].chunk(2)
    turned = (torch.complex(a, b) * torch.complex(*k[j, head].chunk(2)).conj()).resolve_conj()
    powers = c.rope_theta ** (torch.arange(0, c.head_size, 2, dtype=q.dtype) / c.head_size)
    angle = (i - j) / powers
    product: Tensor = (turned * torch.polar(torch.ones_like(angle), angle)).real.sum() / c.head_size**0.5
    return product


def numpy_bytes(text: bytes) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    return np.frombuffer(text, np.uint8)


def one(count: int) -> Layout:
    return Layout.packed([count])
