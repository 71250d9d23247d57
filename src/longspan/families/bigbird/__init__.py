"""BigBird-ITC."""
