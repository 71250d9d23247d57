"""Evaluation: how good, not how fast, on collections that anybody can fetch."""
