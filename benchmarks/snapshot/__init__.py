"""Golden outputs of every family and task, recorded before a change and compared after it."""
