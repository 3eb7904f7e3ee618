from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.row_tree import EMPTY, LEAF, fold

MANY = [sha256(str(number).encode()).digest() for number in range(LEAF + 500)]
FEW = st.lists(st.sampled_from(MANY[:5]))


@given(FEW, FEW, st.booleans())
def test_a_tree_is_the_multiset_whatever_the_way_to_it(kept: list[bytes], gone: list[bytes], at_once: bool) -> None:
    direct = fold(EMPTY, kept[::-1])
    around = fold(EMPTY, [*gone, *kept], gone) if at_once else fold(fold(EMPTY, [*kept, *gone]), [], gone)
    assert around == direct
    assert direct.size == len(kept)


@given(FEW, FEW)
def test_other_multisets_have_other_digests(one: list[bytes], other: list[bytes]) -> None:
    assert (fold(EMPTY, one).digest == fold(EMPTY, other).digest) is (sorted(one) == sorted(other))


def test_a_tree_that_grew_and_shrank_is_the_one_built_at_once() -> None:
    mixed = sorted(MANY, key=lambda item: item[::-1])
    tree = EMPTY
    for start in range(0, len(mixed), 700):
        tree = fold(tree, mixed[start : start + 700])
    assert tree.children
    assert tree == fold(EMPTY, MANY)
    assert fold(tree, MANY[:1], MANY[1:2]) == fold(EMPTY, [*MANY[:1], *MANY[:1], *MANY[2:]])
    assert fold(tree, [], MANY[100:]) == fold(EMPTY, MANY[:100])


def test_equal_rows_by_the_thousand_are_one_leaf_in_the_end() -> None:
    tree = fold(EMPTY, MANY[:1] * (LEAF + 1))
    assert tree.size == LEAF + 1
    assert fold(tree, [], MANY[:1]) == fold(EMPTY, MANY[:1] * LEAF)


@pytest.mark.parametrize("rows", [[], MANY[:3], MANY])
def test_a_row_that_is_not_there_cannot_go(rows: list[bytes]) -> None:
    with pytest.raises(ValueError, match="not there"):
        fold(fold(EMPTY, rows), [], [b"\x00" * 32])
