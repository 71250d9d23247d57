"""Readers inside other libraries; each file needs its library, and is imported by itself."""
