"""RoBERTa, XLM-R and CamemBERT."""
