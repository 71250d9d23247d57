"""Metrics: the measures that papers report, by their official definitions, on plain Python values."""
