"""The character-level language model of Longformer, section 4, trained in phases."""
