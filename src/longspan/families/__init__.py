"""Models, each a file that reads like its paper: a config, the patterns it means, a module."""
