"""Nomic BERT."""
