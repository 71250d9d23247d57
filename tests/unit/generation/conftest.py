"""Steps are small: threads that wait for each other would take longer than the work."""

from conformance.conftest import one_thread

__all__ = ["one_thread"]
