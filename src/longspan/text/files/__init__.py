"""Readers of file formats, and the child process in which risky formats are parsed."""
