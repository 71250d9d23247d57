"""As in the conformance tests; those about threads say how many they want."""

from conformance.conftest import one_thread

__all__ = ["one_thread"]
