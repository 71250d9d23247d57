"""Writing texts with a decoder: greedily, by beam search or by drawing words."""
