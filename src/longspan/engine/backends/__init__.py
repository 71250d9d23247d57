"""The backends in the order they are tried; the problem and what is installed decide which one runs."""

from functools import cache
from importlib import import_module

from longspan.engine.backends.base import Backend, Problem
from longspan.errors import BackendError, bad

BACKENDS = {
    "native": "longspan.engine.backends.native:Native",
    "tiled": "longspan.engine.backends.tiled:Tiled",
    "dense": "longspan.engine.backends.dense:Dense",
}


class Missing:
    """A backend that cannot be imported, and why."""

    def __init__(self, error: ImportError) -> None:
        self.reason = f"is not installed ({error})"

    def refuses(self, problem: Problem) -> list[str]:
        return [self.reason]


@cache
def load(name: str) -> Backend | Missing:
    """The backend of that name, imported on first use."""
    module, attribute = BACKENDS[name].split(":")
    try:
        backend: Backend = getattr(import_module(module), attribute)()
    except ImportError as error:
        return Missing(error)
    return backend


def known(name: str) -> str:
    """The name itself if it is a backend's; else an error that lists the backends."""
    if name not in BACKENDS:
        raise bad("backend", f"one of {', '.join(BACKENDS)}", name, "Leave it out to have one selected.")
    return name


def select(problem: Problem, name: str | None = None) -> Backend:
    """The first backend that does not refuse, or the named one; if none is left, an error says why."""
    reasons = []
    for candidate in BACKENDS if name is None else [known(name)]:
        backend = load(candidate)
        refusal = backend.refuses(problem)
        if not refusal and not isinstance(backend, Missing):
            return backend
        reasons.append(f"{candidate}: {'; '.join(refusal)}.")
    raise BackendError(f"No backend can do this attention. {' '.join(reasons)}")
