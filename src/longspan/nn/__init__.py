"""Layers: they get plain sizes, work on packed rows (N, C), and read a layout or a plan, never a config."""
