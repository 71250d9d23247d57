"""Jina BERT."""
