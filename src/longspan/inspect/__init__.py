"""Models that can be looked at before they run: their patterns in pictures, and what they cost."""
