"""Documents to packed batches to results in order: what every task, search and training share."""
