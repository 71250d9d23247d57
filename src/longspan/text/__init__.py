"""Text in, tokens out: tokenizers, which tokens are global, batches without padding."""
