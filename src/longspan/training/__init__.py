"""Training: one loop for every recipe, a data order that is a function, runs that lose nothing."""
