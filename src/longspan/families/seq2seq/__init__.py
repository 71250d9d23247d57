"""Encoder-decoder models."""
