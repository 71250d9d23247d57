"""Checkpoints: a folder to a model for a task, and back."""
