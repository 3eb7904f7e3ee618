"""A text is read once as long as it is kept, and what is kept is bounded."""

from decimal import Decimal

from curation.diagnosis.derivation import MAX_COMPARED, is_too_large
from curation.diagnosis.texts import MAX_KEPT, read_text
from schemas.trajectory import Message


def test_a_text_that_was_read_is_kept_until_others_fill_the_place() -> None:
    first = read_text("2 of A17, 3 of A18")
    assert read_text("2 of A17, 3 of A18") is first
    for number in range(4):
        read_text(f"{number}" * (MAX_KEPT // 3))
    assert read_text("2 of A17, 3 of A18") is not first


def test_equal_things_of_a_text_are_told_by_the_first_of_them() -> None:
    text = "3 minutes for A17, a17 and A17-B, or 3 hours, on 2026-03-04 and 2026-03-04"
    read = read_text(text)
    assert (read.numbers[Decimal(3)].start, read.converted[Decimal(180)].start) == (0, 0)
    assert read.names["A17"] == [(14, 17), (27, 32)]
    assert [written.start for written in read.days.values()] == [text.index("2026")]


def test_values_times_characters_are_bounded() -> None:
    """What the model itself wrote is not compared and does not count."""
    said, own = Message("user", "x" * (MAX_COMPARED // 100)), Message("assistant", "x" * MAX_COMPARED)
    assert is_too_large({"skus": list(range(100))}, [said, own])
    assert not is_too_large({"skus": list(range(90))}, [said, own])
