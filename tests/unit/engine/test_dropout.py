"""Dropout is a function of who the pair is."""

import pytest
import torch

from longspan.engine.call import attention
from longspan.engine.dropout import Dropout, kept, key_hash, row_hash
from longspan.engine.plan import plan
from longspan.errors import InputError
from longspan.layout import Layout
from longspan.patterns import Full, Window

WORD = 2**32 - 1


def mix(x: int) -> int:
    x ^= x >> 16
    x = x * 0x7FEB352D & WORD
    x ^= x >> 15
    x = x * 0x846CA68B & WORD
    return x ^ x >> 16


def survives(seed: int, p: float, document: int, head: int, query: int, key: int) -> bool:
    """The rule in whole numbers, for one pair."""
    start = mix(mix(seed & WORD) ^ (seed >> 32 & WORD))
    row = mix((mix(mix((start + document) & WORD) ^ (head * 0x9E3779B9 & WORD)) + query) & WORD)
    return mix((row + mix(key ^ 0x85EBCA6B)) & WORD) >= int(p * 2**32)


@pytest.mark.parametrize("seed", [0, 7, -1, 2**40 + 3, -(2**63)])
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.999])
def test_the_hash_is_what_the_rule_says(seed: int, p: float) -> None:
    heads, queries, keys = (torch.arange(n, dtype=torch.int32) for n in (3, 5, 7))
    document = torch.tensor(4, dtype=torch.int32)
    row = row_hash(torch.tensor(seed), document, 1000 * queries, heads[:, None])
    found = kept(row[:, :, None], key_hash(999 * keys), p)
    expected = [
        [[survives(seed, p, 4, h, 1000 * q, 999 * k) for k in range(7)] for q in range(5)] for h in range(3)
    ]
    assert found.tolist() == expected


def test_golden_pairs_are_kept() -> None:
    row = row_hash(torch.tensor(42), *(torch.tensor([n], dtype=torch.int32) for n in (1, 2, 3)))
    bits = kept(row, key_hash(torch.arange(16, dtype=torch.int32)), 0.5)
    assert "".join(str(int(bit)) for bit in bits) == "0011110010111010"


def test_about_p_of_all_pairs_are_dropped() -> None:
    position = torch.arange(1000, dtype=torch.int32)
    row = row_hash(torch.tensor(3), position * 0, position, position * 0)
    share = 1 - kept(row[:, None], key_hash(position), 0.1).double().mean().item()
    assert share == pytest.approx(0.1, abs=0.002)


def test_a_seed_gives_one_result_and_another_seed_another() -> None:
    made = plan(Window(5), Layout.packed([50]), heads=2)
    q, k, v = torch.randn(3, 50, 2, 4, generator=torch.Generator().manual_seed(1))
    first, again, other = (attention(q, k, v, made, dropout=Dropout(0.5, seed)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(first, attention(q, k, v, made, dropout=Dropout(0.5, torch.tensor(1))))


def test_dropout_keeps_the_mean_and_leaves_lse_alone() -> None:
    made = plan(Full(), Layout.packed([400]), heads=2)
    x = torch.zeros(400, 2, 4)
    out, lse = attention(x, x, x + 1, made, dropout=Dropout(0.4, seed=5), return_lse=True)
    assert out.mean().item() == pytest.approx(1, abs=0.01)
    torch.testing.assert_close(lse, torch.full((400, 2), 400.0).log())


def test_no_dropout_is_exactly_that() -> None:
    made = plan(Window(5), Layout.packed([50]), heads=2)
    q, k, v = torch.randn(3, 50, 2, 4)
    assert torch.equal(attention(q, k, v, made, dropout=Dropout(0.0, seed=1)), attention(q, k, v, made))


@pytest.mark.parametrize("p", [-0.1, 1.0, 1.5, float("nan")])
def test_a_bad_chance_is_refused(p: float) -> None:
    with pytest.raises(InputError, match="`p` must be at least 0 and less than 1"):
        Dropout(p, seed=1)


@pytest.mark.parametrize("seed", [1.5, "x", 2**63, None, True])
def test_a_bad_seed_is_refused(seed: int) -> None:
    with pytest.raises(InputError, match="`seed` must be a whole number of 64 bits"):
        Dropout(0.1, seed)


@pytest.mark.parametrize("seed", [torch.tensor([1]), torch.tensor(1.0), torch.tensor(1, dtype=torch.int32)])
def test_a_bad_seed_tensor_is_refused(seed: torch.Tensor) -> None:
    with pytest.raises(InputError, match="`seed` must be an int64 scalar tensor"):
        Dropout(0.1, seed)
