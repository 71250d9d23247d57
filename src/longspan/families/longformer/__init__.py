"""Longformer."""
