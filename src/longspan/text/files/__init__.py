"""Readers of single file formats, and the child process in which those of risky formats run."""
