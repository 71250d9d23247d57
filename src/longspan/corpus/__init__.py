"""Training data: documents to tokens on the disk, and the tokenizers that make them."""
