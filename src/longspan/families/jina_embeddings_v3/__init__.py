"""Jina embeddings v3."""
