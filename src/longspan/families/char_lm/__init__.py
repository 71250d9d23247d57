"""The character-level language model of Longformer, section 4: causal windows that grow with the layer."""
