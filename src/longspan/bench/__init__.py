"""Benchmarks: named cases that run Longspan and its peers in turn and report ratios."""
