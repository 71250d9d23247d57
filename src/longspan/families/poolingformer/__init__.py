"""Poolingformer."""
