"""The formats of published datasets: one file each says how its records become rows with plain names."""
