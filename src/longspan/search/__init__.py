"""Search: documents are encoded whole, and their passages found by meaning and by words."""
