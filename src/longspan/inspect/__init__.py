"""A model or a pattern before it runs: pictures, receptive field, cost."""
