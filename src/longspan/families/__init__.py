"""Model families, a folder each: model.py reads like its paper, files.py knows its checkpoints."""
