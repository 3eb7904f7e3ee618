from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from environments.protocol import StartError
from environments.samples import Sampler, given
from schemas.canonical import raw
from schemas.objects import ToolSpec

SCHEMA = {
    "type": "object",
    "$defs": {"Room": {"type": "object", "properties": {"nr": {"type": "integer", "minimum": 3}}, "required": ["nr"]}},
    "properties": {
        "sku": {"type": "string", "minLength": 2},
        "size": {"enum": ["S", "M"]},
        "qty": {"type": "integer", "exclusiveMinimum": 0, "maximum": 3},
        "share": {"type": "number", "minimum": 0.25, "maximum": 0.5},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 2},
        "room": {"$ref": "#/$defs/Room"},
        "note": {"anyOf": [{"type": "null"}, {"type": "string"}]},
        "fixed": {"const": 7},
        "flag": {"type": ["null", "boolean"]},
        "city": {"type": "string", "default": "Bern"},
    },
    "required": ["sku", "size", "qty", "tags", "room", "fixed"],
}
TOOL = ToolSpec("t", "", raw(SCHEMA))


def test_arguments_fit_their_schema_and_a_seed_gives_them_again() -> None:
    validator = Draft202012Validator(SCHEMA)
    for seed in range(50):
        made = [Sampler(seed).arguments(TOOL) for _ in range(2)]
        assert made[0] == made[1]
        assert [*validator.iter_errors(made[0])] == []
    assert len({msgspec.json.encode(Sampler(seed).arguments(TOOL)) for seed in range(50)}) > 10


def test_what_answers_hold_under_the_same_name_is_tried() -> None:
    sampler = Sampler(0)
    sampler.learn('{"items":[{"sku":"A17","qty":2}]}')
    sampler.learn("- sku: B18\n  qty: 1\n")
    seen = {sampler.arguments(TOOL)["sku"] for _ in range(50)}
    assert {"A17", "B18"} <= seen


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    endless = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    assert Sampler(0).arguments(ToolSpec("t", "", raw(endless)))


@pytest.mark.parametrize(
    ("example", "why"),
    [
        (("t", 5), "is ('t', 5); give a tool's name and its arguments"),
        ("t", "is 't'; give a tool's name and its arguments"),
        (("t", {"sku": object()}), "of 't': its arguments are no JSON"),
    ],
)
def test_an_example_that_is_no_call_is_named(example: Any, why: str) -> None:
    with pytest.raises(StartError) as caught:
        given([("t", {"sku": "A17"}), example])
    assert "examples[1]" in str(caught.value)
    assert why in str(caught.value)
