import pytest

from curation.mutation import Answered, alterations, mutation_scores
from environments.catalogue import find

SPEC = find("inventory").spec
STOCK = Answered("get_stock", '{"sku":"A17","stock":2}')
OTHER = Answered("get_stock", '{"sku":"B17","stock":3}')
FAILED = Answered("get_stock", '{"error":"unknown_sku"}', failed=True)


def made(answer: Answered, *others: Answered) -> set[tuple[str, str]]:
    return set(alterations(answer, others))


def test_the_alterations_of_an_object() -> None:
    assert made(STOCK, STOCK, OTHER) == {
        ("pasted", OTHER.text),
        ("number_flipped", '{"sku":"A18","stock":2}'),
        ("number_flipped", '{"sku":"A17","stock":3}'),
        ("cut", '{"sku":"A17"'[: len(STOCK.text) // 2]),
        ("cut", STOCK.text[: -len(STOCK.text) // 4]),
    }


@pytest.mark.parametrize(
    ("text", "dropped", "reordered"),
    [
        ('[{"id":1},{"id":2}]', {'[{"id":2}]'}, {'[{"id":2},{"id":1}]'}),
        ('{"to":["a","b"]}', {'{"to":["b"]}'}, {'{"to":["b","a"]}'}),
        ("to:\n- a\n- b", {"to:\n- b", "- a\n- b"}, {"to:\n- b\n- a", "- b\n- a\nto:"}),
        ("['a', 'b'] sent", {"['b'] sent", ""}, {"['b', 'a'] sent"}),
        ('"nothing to drop"', set(), set()),
    ],
)
def test_rows_are_dropped_and_reordered(text: str, dropped: set[str], reordered: set[str]) -> None:
    found = made(Answered("list", text))
    assert {altered for kind, altered in found if kind == "row_dropped"} == dropped
    assert {altered for kind, altered in found if kind == "reordered"} == reordered


def test_success_is_claimed_only_where_the_call_failed() -> None:
    claimed = {text for kind, text in made(FAILED, STOCK, FAILED, OTHER) if kind == "success_claimed"}
    assert claimed == {STOCK.text, OTHER.text, '{"status":"ok"}'}
    assert "success_claimed" not in {kind for kind, _ in made(STOCK, OTHER)}


def test_an_alteration_of_many_places_is_bounded_and_spread() -> None:
    text = " ".join(str(number) for number in range(100))
    flipped = [altered for kind, altered in alterations(Answered("count", text), ()) if kind == "number_flipped"]
    assert len(flipped) == 8
    assert any(altered.startswith("1 1 ") for altered in flipped)
    assert any(altered[:200] == text[:200] for altered in flipped)


def test_each_comparator_is_blind_to_what_it_forgives_and_to_nothing_else() -> None:
    spec = SPEC._replace(rules=("outer_whitespace@1", "clock@1", "set_order@1"), unordered=("/to",))
    answers = [
        Answered("send", "sent 2024-05-15 15:00 to 7", moves={"clock@1": frozenset((0,))}),
        Answered("people", "to:\n- a\n- b", moves={"set_order@1": frozenset((0,))}),
        Answered("rows", '{"to":["a","b"],"n":1}'),
        Answered("rows", '{"to":["c"],"n":2}'),
        Answered("pad", "x "),
        Answered("look", '{"error":"none"}', failed=True),
    ]
    counts = {(item.comparator, item.alteration): item for item in mutation_scores(answers, spec)}
    blind = {key: item.called_equal for key, item in counts.items() if item.called_equal}
    assert blind == {
        ("clock@1", "number_flipped"): 5,
        ("outer_whitespace@1", "cut"): 1,
        ("set_order@1", "reordered"): 1,
        ("unordered@1", "reordered"): 1,
    }
    assert counts["clock@1", "number_flipped"].altered == 6
    assert {name for name, kind in counts if kind == "success_claimed"} == {
        *("equal_bytes", "outer_whitespace@1", "json@1", "unordered@1"),
    }
    assert counts["json@1", "reordered"].altered == 1
