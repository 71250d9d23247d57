"""A short model becomes a long one: positions, comparison with the source, model card."""
