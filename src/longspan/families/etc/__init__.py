"""ETC and BigBird-ETC."""
