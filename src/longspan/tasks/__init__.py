"""What a model is asked to do: one file per task, with its loss and the way from scores to answers."""
