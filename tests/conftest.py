"""The same conditions for every test: two threads, no randomness that was not asked for."""

import torch
from hypothesis import settings

torch.set_num_threads(2)

settings.register_profile("longspan", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("longspan")
