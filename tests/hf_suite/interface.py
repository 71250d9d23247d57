"""A pytest plugin for transformers' own tests: models that would have torch's attention have Longspan's.

Only where a test leaves the choice to transformers: who asks for "sdpa" or "eager" gets it.
"""

from functools import wraps
from importlib import import_module
from typing import Any


def pytest_configure(config: Any) -> None:
    """Change what no wish means."""
    from transformers import PreTrainedModel

    import_module("longspan.hf")  # makes the name known
    plain = PreTrainedModel.get_correct_attn_implementation

    @wraps(plain)
    def ours(self: Any, requested_attention: str | None, is_init_check: bool = False) -> str:
        chosen: str = plain(self, requested_attention, is_init_check)
        return "longspan" if requested_attention is None and chosen == "sdpa" else chosen

    PreTrainedModel.get_correct_attn_implementation = ours
