import pytest

from environments.catalogue import UnknownEnvironmentError, find
from environments.protocol import fault_of


@pytest.mark.parametrize("name", ["inventory", "booking"])
def test_a_short_name_gives_the_world_of_that_id(name: str) -> None:
    spec = find(name).spec
    assert spec.name == f"{name}@1"
    assert all(effect == "read" for effect in spec.effects.values()) is (name == "inventory")
    assert len(spec.code_digest) == 64


@pytest.mark.parametrize("attribute", ["rough", "Rough"])
def test_an_instance_or_what_makes_one_gives_an_environment(attribute: str) -> None:
    assert find(f"tests.environments.rough:{attribute}").spec.id == "rough"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("shop", "unknown environment 'shop': it is no module:attribute; known: .*booking, .*inventory"),
        ("no_such_module:World", "cannot be loaded .*no_such_module"),
        ("environments.booking:Shop", "cannot be loaded .*Shop"),
        ("tests.environments.rough:number", "gives a int without the spec and open"),
        (":", "no module:attribute"),
    ],
)
def test_an_unknown_name_says_what_it_led_to_and_what_there_is(name: str, why: str) -> None:
    with pytest.raises(UnknownEnvironmentError, match=why):
        find(name)


def test_two_worlds_have_two_code_digests() -> None:
    assert find("inventory").spec.code_digest != find("booking").spec.code_digest
    assert find("inventory").spec.code_digest == find("inventory").spec.code_digest


@pytest.mark.parametrize("name", ["inventory", "booking"])
def test_a_declared_fault_is_found_by_its_field_and_value_alone(name: str) -> None:
    spec = find(name).spec
    fault = fault_of(spec, {"error": "timeout"})
    assert fault is not None
    assert fault.kind == "timeout"
    assert fault_of(spec, {"error": "unknown_sku", "sku": "timeout"}) is None
    assert fault_of(spec, "timeout") is None


CLAIMS = [
    ("Booked! A17 is reserved for you.", "book"),
    ("Booked one A17 for you", "book"),
    ("您的 A17 已预订。", "book"),
    ("已为您预订 A17", "book"),
    ("A17 预定成功", "book"),
    ("I have cancelled B18.", "cancel"),
    ("Your booking was canceled.", "cancel"),
    ("B18 的预订已取消", "cancel"),
    ("A17: 2 in Hangzhou.", None),
    ("需要预订吗?", None),
    ("The unbooked rest stays.", None),
]


@pytest.mark.parametrize(("text", "tool"), CLAIMS)
def test_wording_that_claims_an_effect_names_the_tool_that_must_have_answered(text: str, tool: str | None) -> None:
    claims = find("booking").spec.claims
    assert {claim.tool for claim in claims if claim.pattern.search(text)} == ({tool} if tool else set())


def test_claims_are_found_in_linear_time() -> None:
    hostile = ("book" * 20_000) + ("cancelle" * 20_000) + ("已经" * 20_000)
    for claim in find("booking").spec.claims:
        assert claim.pattern.search(hostile) is None
