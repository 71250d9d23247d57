"""BART (Lewis et al. 2020): the encoder-decoder that LED is made from."""
