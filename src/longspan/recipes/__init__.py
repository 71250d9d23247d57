"""Recipes: what is trained, on what data, by which loss; the loop is the same for all."""
