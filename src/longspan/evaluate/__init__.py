"""Evaluation: how good results are, on collections that anybody can download."""
