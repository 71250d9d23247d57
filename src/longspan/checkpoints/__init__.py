"""Reading and writing checkpoints: data only, never code; every file is checked before torch sees it."""
