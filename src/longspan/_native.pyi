from collections.abc import Sequence

def forward(
    plan: Sequence[int],
    q: Sequence[int],
    k: Sequence[int],
    v: Sequence[int],
    dtype: int,
    sizes: Sequence[int],
    scale: float,
    softcap: float,
    terms: Sequence[int],
    dropout: float,
    seed: int,
    threads: int,
    target: str,
    out: int,
    lse: int,
    /,
) -> None: ...
def backward(
    plan: Sequence[int],
    q: Sequence[int],
    k: Sequence[int],
    v: Sequence[int],
    dtype: int,
    sizes: Sequence[int],
    scale: float,
    softcap: float,
    terms: Sequence[int],
    dropout: float,
    seed: int,
    threads: int,
    target: str,
    out: Sequence[int],
    lse: int,
    grad_out: Sequence[int],
    grad_lse: int,
    gradients: Sequence[int],
    /,
) -> None: ...
def linear(
    addresses: Sequence[int], sizes: Sequence[int], act: int, across: bool, threads: int, target: str, /
) -> None: ...
def layer_norm(
    addresses: Sequence[int], sizes: Sequence[int], eps: float, centered: bool, threads: int, target: str, /
) -> None: ...
def rotate(
    addresses: Sequence[int], sizes: Sequence[int], sign: float, threads: int, target: str, /
) -> None: ...
def max_sim(addresses: Sequence[int], sizes: Sequence[int], threads: int, target: str, /) -> None: ...
def abi_version() -> int: ...
def plan_arrays() -> list[tuple[str, int, int]]: ...
def targets() -> list[str]: ...
def compiled_targets() -> list[str]: ...
def features() -> dict[str, bool]: ...
def amx_state() -> str: ...
