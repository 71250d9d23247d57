"""EmbeddingGemma: Gemma 3 as an encoder."""
