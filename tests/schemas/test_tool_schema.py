"""Arguments against the schema of their tool: what is wrong with them, and what is left unchecked."""

import socket
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.canonical import raw
from schemas.reasons import UNCHECKED
from schemas.tool_schema import SchemaCheck, check_arguments, named_values, pattern_cost

STOCK = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "pattern": "^[A-Z][0-9]+$"},
        "qty": {"type": "integer", "minimum": 1, "default": 1},
        "way": {"$ref": "#/$defs/way"},
        "legs": {"type": "array", "items": {"type": "object", "properties": {"day/night": {"enum": ["day", "night"]}}}},
    },
    "required": ["sku"],
    "additionalProperties": False,
    "$defs": {"way": {"enum": ["air", "sea"]}},
}


def check(schema: Any, arguments: Any) -> SchemaCheck:
    return check_arguments(raw(schema), arguments)


def test_right_arguments_are_valid() -> None:
    found = check(STOCK, {"sku": "A17", "qty": 2, "way": "air", "legs": [{"day/night": "day"}]})
    assert found == SchemaCheck()
    assert found.valid


@pytest.mark.parametrize(
    ("arguments", "path", "rule"),
    [
        ({}, "", "/required"),
        ({"sku": 17}, "/sku", "/properties/sku/type"),
        ({"sku": "17"}, "/sku", "/properties/sku/pattern"),
        ({"sku": "A17", "city": "X"}, "", "/additionalProperties"),
        ({"sku": "A17", "qty": 0}, "/qty", "/properties/qty/minimum"),
        ({"sku": "A17", "way": "rail"}, "/way", "/properties/way/enum"),
        (
            {"sku": "A17", "legs": [{}, {"day/night": "noon"}]},
            "/legs/1/day~1night",
            "/properties/legs/items/properties/day~1night/enum",
        ),
    ],
)
def test_a_problem_names_the_value_and_the_rule(arguments: Any, path: str, rule: str) -> None:
    (problem,) = check(STOCK, arguments).problems
    assert (problem.path, problem.rule) == (path, rule)


def test_problems_and_their_words_are_bounded() -> None:
    found = check({"items": {"type": "string"}}, list(range(100)))
    assert len(found.problems) == 20
    assert len(check({"type": "integer"}, "x" * 10_000).problems[0].message) <= 200


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "broken_schema"),
        ([], "broken_schema"),
        ({"type": "object", "properties": None}, "broken_schema"),
        ({"properties": {"sku": {"type": "string", "enum": None, "pattern": None}}}, "broken_schema"),
        ({"properties": {"sku": {"type": "text"}}}, "broken_schema"),
        ({"properties": {"sku": {"pattern": "("}}}, "broken_schema"),
        ({"required": ["sku"], "allOf": [{"$ref": "#/required"}]}, "broken_schema"),
        ({"$ref": "#/$defs/none"}, "reference"),
        ({"$ref": "file:///etc/hostname"}, "reference"),
        ({"$dynamicRef": "https://example.org/x#y"}, "reference"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, "endless"),
        ({"properties": {"sku": {"pattern": "^(a+)+$"}}}, "slow_pattern"),
        ({"patternProperties": {"^(s+)+!$": {}}, "additionalProperties": False}, "slow_pattern"),
    ],
)
def test_a_schema_that_cannot_be_used_is_no_failure(schema: Any, reason: str) -> None:
    found = check(schema, {"sku": "A17"})
    assert found.unchecked == reason
    assert found.problems == ()
    assert not found.valid
    assert found.detail
    assert reason in UNCHECKED


def test_nothing_is_ever_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        for key in ("$ref", "$dynamicRef", "$schema", "$id"):
            address = f"http://127.0.0.1:{port}/s"
            check({key: address, "properties": {"sku": {"$ref": f"{address}#/x"}}}, {"sku": "A17"})
        assert check({"$ref": f"http://127.0.0.1:{port}/s"}, {}).unchecked == "reference"
        with pytest.raises(TimeoutError):
            server.accept()


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(?:a|aa)*$",
        "(a*)*b",
        "^(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)$",
        "a*a*a*a*a*b",
        "^a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a?a{24}$",
        "(?x)^(a+) +$",
        "[^]a](a+){20}",
    ],
)
def test_a_slow_pattern_ends_at_once(pattern: str) -> None:
    start = time.perf_counter()
    found = check({"properties": {"sku": {"pattern": pattern}}}, {"sku": "a" * 40 + "!"})
    assert found.unchecked == "slow_pattern"
    assert time.perf_counter() - start < 1


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("^[A-Z]{3}$", "SEA"),
        (r"^\d{4}-\d{2}-\d{2}$", "2024-05-15"),
        (r"^\S+@\S+\.\S+$", "mia@example.com"),
        ("^(red|green|blue|black|white|grey|pink|brown)$", "blue"),
        (r"^#?[A-Z]\d+(?:-[a-z]+)?$", "A17-b"),
        ("^[](){}*+?|]+$", "(*)"),
    ],
)
def test_ordinary_patterns_are_checked(pattern: str, value: str) -> None:
    schema = {"properties": {"sku": {"type": "string", "pattern": pattern}}}
    assert check(schema, {"sku": value}).valid
    assert len(check(schema, {"sku": "\n"}).problems) == 1


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(["a", "b", ".", "[ab]", "(a)", "(a|b)", "(a|ab)"]).flatmap(
            lambda atom: st.sampled_from(["", "*", "+", "?", "{2,9}", "{3}"]).map(lambda sign: atom + sign)
        ),
        max_size=6,
    ),
    st.integers(0, 300),
)
def test_a_pattern_that_is_let_through_is_quick(parts: list[str], length: int) -> None:
    start = time.perf_counter()
    check({"properties": {"sku": {"pattern": "".join(parts) + "!$"}}}, {"sku": "a" * length})
    assert time.perf_counter() - start < 2


def test_the_cost_of_a_pattern_grows_with_the_text() -> None:
    assert pattern_cost("^a+$", 10) < pattern_cost("^a+$", 100) < pattern_cost("a+$", 100)
    with pytest.raises(ValueError, match="repeated"):
        pattern_cost("(a)*", 1)


def test_references_that_multiply_are_bounded() -> None:
    """Thirty definitions, each twice the one before: a billion checks of one value."""
    definitions: dict[str, Any] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(30)
    }
    start = time.perf_counter()
    found = check({"$ref": "#/$defs/d0", "$defs": definitions | {"d30": {}}}, {})
    assert found.unchecked == "too_large"
    assert time.perf_counter() - start < 5


def test_size_is_bounded() -> None:
    many = {"enum": list(range(30_000))}
    assert check({"items": many}, list(range(30_000))).unchecked == "too_large"
    assert check({"uniqueItems": True}, [{"n": n} for n in range(2_000)]).unchecked == "too_large"
    assert check({"uniqueItems": True}, [1, 1]).problems[0].rule == "/uniqueItems"


def test_a_recursive_schema_is_checked() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    assert check(tree, {"next": {"next": {}}}).valid
    assert [problem.path for problem in check(tree, {"next": {"last": 1}}).problems] == ["/next"]


def test_an_older_draft_is_read_as_it_is_meant() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}, {"type": "integer"}]}
    assert check(schema, ["a", 1]).valid
    assert [problem.path for problem in check(schema, ["a", "b"]).problems] == ["/1"]


def test_values_that_a_schema_names() -> None:
    parameters = raw(STOCK)
    assert named_values(parameters, "/qty").default == (1,)
    assert named_values(parameters, "/way").allowed == ("air", "sea")
    assert named_values(parameters, "/legs/3/day~1night").allowed == ("day", "night")
    assert named_values(parameters, "/none/0") == ((), ())
    assert named_values(raw({"properties": {"a": {"const": 3, "default": None}}}), "/a") == ((3,), (None,))
    assert named_values(raw(None), "/qty") == ((), ())
    assert named_values(raw({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}), "/qty") == ((), ())
