"""Search: whole documents encoded once, their passages found by meaning and by words."""
