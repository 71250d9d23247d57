"""Stitched, Longspan's own long model for search."""
