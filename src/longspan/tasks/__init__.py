"""What a model is asked to do: one file and one `Task` value for each task."""
