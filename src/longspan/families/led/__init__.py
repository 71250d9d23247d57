"""LED: Longformer reads, BART writes."""
