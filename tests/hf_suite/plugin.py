"""A pytest plugin for transformers' own tests: every model that they build has Longspan's attention.

`make hf-suite TRANSFORMERS=checkout` runs these tests without it and with it, and compares what comes out.
"""

from functools import wraps
from typing import Any


def pytest_configure(config: Any) -> None:
    """Swap at the end of every model's construction, before weights are loaded into it."""
    from transformers import PreTrainedModel

    from longspan import hf
    from longspan.errors import InputError

    plain = PreTrainedModel.post_init

    @wraps(plain)
    def swapped(self: Any) -> None:
        plain(self)
        try:
            hf.accelerate(self)
        except InputError as error:
            if "`model` must be a model of transformers" not in str(error):
                raise

    PreTrainedModel.post_init = swapped
