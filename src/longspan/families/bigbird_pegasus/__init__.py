"""BigBird-Pegasus: BigBird reads, Pegasus writes."""
