"""attn_implementation="longspan": what transformers calls for masks and for attention."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import causal_mask_function, sdpa_mask
from transformers.utils import logging

from longspan.engine.call import attention
from longspan.engine.dropout import Dropout
from longspan.errors import InputError, bad
from longspan.hf.mask_functions import Band, band
from longspan.hf.pattern_mask import PatternMask, padding
from longspan.hf.serving import once, serves, traced

log = logging.get_logger(__name__)
NAME = "longspan"
SDPA, EAGER = (f'Use attn_implementation="{name}" for this.' for name in ("sdpa", "eager"))
UNKNOWN = {
    "s_aux": "attention sinks",
    "position_bias": "a bias for each pair",
    "head_mask": "a factor for each head",
    "block_indices": "blocks of keys for each query",
}
"""Options of some models that change what attention computes."""


def register() -> None:
    """Make the name known to transformers, for models that exist and for those to come."""
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, mask)


def mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: Tensor | PatternMask | None = None,
    device: torch.device | str = "cpu",
    **kwargs: Any,
) -> PatternMask | Tensor | None:
    """The mask of a call, as small as its inputs; torch's own where the kernels do not serve."""
    if isinstance(attention_mask, PatternMask):
        return attention_mask  # made before, by generation
    if traced() or torch.device(device).type != "cpu":
        sizes = batch_size, q_length, kv_length, q_offset, kv_offset
        theirs: Tensor | None = sdpa_mask(*sizes, mask_function, attention_mask, device=device, **kwargs)
        return theirs
    queries, keys = (q_length, q_offset), (kv_length, kv_offset)
    made: PatternMask = _mask(batch_size, queries, keys, mask_function, attention_mask)
    return made


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _mask(
    batch: int,
    queries: tuple[int, Any],
    keys: tuple[int, Any],
    function: Callable[..., Any],
    given: Tensor | None,
) -> PatternMask:
    """Offsets may be scalar tensors: static caches count in them."""
    rows, columns = ((int(length), int(first)) for length, first in (queries, keys))
    return PatternMask(band(function), batch, rows, columns, padding(given, columns))


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: PatternMask | Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Query (B, H, Q, D), key and value (B, H or fewer, K, D) to (B, Q, H, D); there are no probabilities."""
    _refuse(kwargs)
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    if serves(query) and not isinstance(attention_mask, Tensor):
        return _attend(module, query, key, value, attention_mask, causal, dropout, scaling, softcap), None
    if isinstance(attention_mask, PatternMask):
        repair = 'Use attn_implementation="sdpa" where tensors are traced, or on several devices.'
        raise bad(
            "query", "a plain tensor on the CPU, as when its mask was made", type(query).__name__, repair
        )
    if softcap is not None:
        raise bad(
            "softcap", "None with a mask of 4 dimensions or on other devices than the CPU", softcap, EAGER
        )
    return _theirs(module, query, key, value, attention_mask, dropout, scaling, is_causal), None


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: PatternMask | None,
    causal: bool,
    dropout: float,
    scaling: float | None,
    softcap: float | None,
) -> Tensor:
    batch, queries, keys = query.shape[0], query.shape[2], key.shape[2]
    seen: PatternMask = once(_unmasked, batch, queries, keys, causal) if mask is None else mask
    if seen.shape != (shape := (batch, 1, queries, keys)):
        raise bad("attention_mask", f"of shape {shape} for these queries and keys", seen.shape, SDPA)
    if queries == 1 and softcap is None:  # nothing to plan, and no dense mask
        near, flags = seen.row
        if near != slice(0, keys):
            key, value = key[:, :, near], value[:, :, near]
        return _theirs(module, query, key, value, flags, dropout, scaling, None)
    heads = query.shape[1]
    drop = Dropout(dropout, torch.randint(2**63 - 1, ())) if dropout else None
    q, k, v = map(_rows, (query, key, value))
    context = attention(q, k, v, seen.plan(heads), scale=scaling, softcap=softcap, dropout=drop)
    return context.view(batch, queries, *context.shape[1:])  # (N, H, D) -> (B, Q, H, D)


def _theirs(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    flags: Tensor | None,
    dropout: float,
    scaling: float | None,
    causal: bool | None,
) -> Tensor:
    """torch's attention, as transformers calls it."""
    given = {"dropout": dropout, "scaling": scaling, "is_causal": causal}
    context: Tensor = sdpa_attention_forward(module, query, key, value, flags, **given)[0]
    return context


def _rows(x: Tensor) -> Tensor:
    """(B, H, L, D) -> (B * L, H, D), in the dtype that torch's attention would have."""
    if torch.is_autocast_enabled("cpu"):
        x = x.to(torch.get_autocast_dtype("cpu"))
    return x.transpose(1, 2).flatten(0, 1)


def _unmasked(batch: int, queries: int, keys: int, causal: bool) -> PatternMask:
    """What no mask means to torch: everything, or what is not later, counted from the first key."""
    return PatternMask(Band(right=0) if causal and queries > 1 else Band(), batch, (queries, 0), (keys, 0))


def _refuse(options: dict[str, Any]) -> None:
    """Refuse what changes the result and is not computed here; warn where sdpa would."""
    for name, what in UNKNOWN.items():
        if options.get(name) is not None:
            raise InputError(
                f"`{name}` must be None, but is given: Longspan does not compute {what}. {EAGER}"
            )
    if options.get("output_attentions") and not torch.compiler.is_dynamo_compiling():
        log.warning_once(f"No kernel of Longspan keeps probabilities: there are no attentions. {EAGER}")
