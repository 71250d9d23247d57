"""Layouts: what the rows of a tensor are."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longspan.errors import InputError
from longspan.layout import Layout

LENGTHS = st.lists(st.integers(0, 23), min_size=1, max_size=5)


def columns(layout: Layout) -> dict[str, list[int]]:
    site = layout.sites
    names = ("position", "last", "document", "length", "marked", "exists")
    return {name: getattr(site, name).astype(int).tolist() for name in names}


def test_packed_documents_stand_end_to_end() -> None:
    layout = Layout.packed([3, 2], marked=[[2], [0]], start=[0, 7], tags={"segment": [1, 1, 2, 3, 3]})
    assert columns(layout) == {
        "position": [0, 1, 2, 7, 8],
        "last": [0, 1, 2, 7, 8],
        "document": [0, 0, 0, 1, 1],
        "length": [3, 3, 3, 9, 9],
        "marked": [0, 0, 1, 1, 0],
        "exists": [1, 1, 1, 1, 1],
    }
    assert layout.sites.tags["segment"].tolist() == [1, 1, 2, 3, 3]
    assert layout.lengths.tolist() == [3, 9]
    assert (layout.size, layout.documents, layout.marked_rows.tolist()) == (5, 2, [2, 3])


def test_a_masked_column_keeps_its_place_and_a_document_ends_at_its_last_token() -> None:
    layout = Layout.padded([[True, False, True, False], [False, False, False, False]])
    assert columns(layout)["position"] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert columns(layout)["exists"] == [1, 0, 1, 0, 0, 0, 0, 0]
    assert layout.lengths.tolist() == [3, 0]


def test_a_token_that_does_not_exist_is_not_marked() -> None:
    layout = Layout.padded([[True, False]], marked=[[True, True]])
    assert layout.marked_rows.tolist() == [0]


def test_taken_rows_keep_their_places() -> None:
    layout = Layout.packed([4, 3], marked=[[1], [2]], tags={"t": range(7)})
    taken = layout.take([6, 1])
    assert columns(taken)["position"] == [2, 1]
    assert columns(taken)["length"] == [3, 4]
    assert taken.sites.tags["t"].tolist() == [6, 1]
    assert taken.documents == 2
    assert layout.take([]).size == 0


@given(LENGTHS, st.integers(1, 9), st.integers(1, 9), st.integers(0, 5))
def test_pooled_slots_cover_what_the_definition_says(lengths: list[int], a: int, b: int, start: int) -> None:
    kernel, stride = max(a, b), min(a, b)
    pooled = Layout.packed(lengths, start=start).pool(kernel, stride)
    expected = []
    for document, n in enumerate(lengths):
        for j in range(-(-n // stride)):
            first = j * stride - (kernel - stride) // 2
            centre = min(max(first + (kernel - 1) // 2, 0), n - 1)
            expected.append((document, start + centre, start + min(first + kernel - 1, n - 1), start + n))
    site = pooled.sites
    got = zip(site.document, site.position, site.last, site.length, strict=True)
    assert [tuple(map(int, row)) for row in got] == expected
    assert site.exists.all()
    assert not site.marked.any()


@given(st.lists(st.lists(st.booleans(), min_size=12, max_size=12), min_size=1, max_size=3), st.integers(1, 5))
def test_a_slot_exists_if_any_token_it_covers_does(mask: list[list[bool]], stride: int) -> None:
    kernel = stride + 2
    pooled = Layout.padded(mask).pool(kernel, stride).sites
    firsts = [j * stride - (kernel - stride) // 2 for j in range(-(-12 // stride))]
    exists = [any(row[max(first, 0) : first + kernel]) for row in mask for first in firsts]
    assert pooled.exists.tolist() == exists


def test_padding_changes_nothing_in_the_slots_of_a_document() -> None:
    alone, padded = Layout.packed([10]).pool(5, 4), Layout.padded([[True] * 10 + [False] * 7]).pool(5, 4)
    slots = slice(0, alone.size)
    assert padded.sites.position[slots].tolist() == alone.sites.position.tolist()
    assert padded.sites.last[slots].tolist() == alone.sites.last.tolist()
    assert not padded.sites.exists[alone.size :].any()


def test_joined_rows_follow_each_other_and_share_the_longer_length() -> None:
    long, short = Layout.packed([4, 0], tags={"t": [1, 2, 3, 4]}), Layout.packed([2, 1], marked=[[0], [0]])
    joined = Layout.join(long, short)
    assert columns(joined)["document"] == [0, 0, 0, 0, 0, 0, 1]
    assert columns(joined)["position"] == [0, 1, 2, 3, 0, 1, 0]
    assert columns(joined)["length"] == [4, 4, 4, 4, 4, 4, 1]
    assert joined.sites.tags["t"].tolist() == [1, 2, 3, 4, 0, 0, 0]
    assert joined.marked_rows.tolist() == [4, 6]


def test_layouts_are_compared_by_value() -> None:
    one, same = Layout.packed([3, 4], marked=[[0], []]), Layout.packed((3, 4), marked=[(0,), ()])
    others = [
        Layout.packed([3, 4]),
        Layout.packed([4, 3], marked=[[0], []]),
        Layout.packed([3, 4], marked=[[0], []], start=1),
        Layout.packed([3, 4], marked=[[0], []], tags={"t": range(7)}),
        one.take(range(6)),
        one.pool(1, 1),
    ]
    assert one == same == one.take(range(7))
    assert hash(one) == hash(same)
    assert all(one != other for other in others)
    assert one != "a layout"


def test_marks_that_nobody_gave_are_not_the_same_as_none() -> None:
    unmarked, none = Layout.packed([3, 4]), Layout.packed([3, 4], marked=[(), ()])
    assert unmarked != none
    assert (unmarked.default_marks, none.default_marks) == (True, False)
    assert unmarked.take([0, 1]).default_marks
    assert unmarked.first_marked == Layout.packed([3, 4], marked=[[0], [0]])
    late = np.array([[False, True, True], [True, True, False]])
    assert Layout.padded(late).default_marks
    assert Layout.padded(late).first_marked.marked_rows.tolist() == [1, 3]
    assert not Layout.padded(late, marked=late).default_marks


def test_a_tag_that_is_missing_is_named_with_the_repair() -> None:
    for rows, held in ((Layout.packed([3]), "none"), (Layout.packed([3], tags={"t": [1, 2, 3]}), "'t'")):
        expected = rf"`tags` must hold 'part', but hold {held}. Give it to the layout: Layout.packed\(lengths"
        for site in (rows.sites, rows.take([0]).sites, rows.sites[None, :], rows.pool(1, 1).sites):
            with pytest.raises(
                InputError, match=expected if site is rows.sites else "`tags` must hold 'part'"
            ):
                site.tags["part"]
        assert rows.sites.tags.get("part") is None


def test_a_layout_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Layout.packed([3]).sites.position[0] = 1


def test_a_layout_shows_what_it_holds() -> None:
    assert repr(Layout.packed([])) == "Layout(0 rows, no documents)"
    assert repr(Layout.packed([7] * 9)) == "Layout(63 rows, documents of 7, 7, 7, 7, ... and 7)"
    assert repr(Layout.padded([[True, False]])) == "Layout(2 rows, document of 1, 1 absent)"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Layout.packed([-1]), "`lengths` must be at least 0, but is -1"),
        (lambda: Layout.packed([2.5]), "`lengths` must be a whole number, but is 2.5"),  # type: ignore[list-item]
        (lambda: Layout.packed([2**29], start=2**29), "Split the document"),
        (lambda: Layout.packed([3], marked=[[3]]), "`marked[0]` must be less than the document's length 3"),
        (lambda: Layout.packed([3], marked=[[-1]]), "`marked` must be at least 0, but is -1"),
        (lambda: Layout.packed([3], marked=[[0], [0]]), "one list for each of the 1 documents"),
        (lambda: Layout.packed([3], marked=[0]), "marked=[[0]]"),  # type: ignore[list-item]
        (lambda: Layout.packed([3, 4], start=[1]), "one for each of the 2 documents"),
        (lambda: Layout.packed([3], start=-2), "`start` must be at least 0, but is -2"),
        (
            lambda: Layout.packed([3], tags={"t": [1, 2]}),
            "one number for each of the 3 rows, but is '2 numbers'",
        ),
        (lambda: Layout.packed([2], tags={"t": [0.5, 1]}), "`tags['t']` must be whole numbers"),
        (lambda: Layout.padded([[1, 0]]), "`mask` must be boolean, but is 'int64'"),
        (lambda: Layout.padded([True]), "`mask` must be of shape (B, L)"),
        (lambda: Layout.padded([[True]], marked=[[True, True]]), "like `mask`"),
        (lambda: Layout.packed([3]).take([3]), "`rows` must be row numbers from 0 to 2, but is 3"),
        (lambda: Layout.packed([3]).take([-1]), "but is -1"),
        (lambda: Layout.packed([3]).take([True, False, True]), "np.flatnonzero"),
        (lambda: Layout.packed([3]).pool(2, 0), "`stride` must be at least 1, but is 0"),
        (lambda: Layout.packed([3]).pool(2, 3), "`kernel` must be at least 3, but is 2"),
        (lambda: Layout.packed([3]).take([0, 2]).pool(2, 2), "Pool the layout before take() or join()"),
        (lambda: Layout.join(Layout.packed([3]), Layout.packed([3, 3])), "but hold 1 and 2"),
    ],
)
def test_bad_layouts_are_refused_with_the_value_and_the_repair(
    make: Callable[[], Layout], words: str
) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert words in str(caught.value)


def test_a_site_is_indexed_like_one_column() -> None:
    site = Layout.packed([5], tags={"t": range(5)}).sites[np.array([3, 1])][:, None]
    assert site.shape == (2, 1)
    assert site.tags["t"].tolist() == [[3], [1]]
