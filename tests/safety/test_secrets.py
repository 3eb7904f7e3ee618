"""What is a secret, what is none, and that looking takes time in proportion to the text."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.secrets import KINDS, Secret, find, find_in_text, may_hold

HEX = "4f9a1c7be0d25386aa17c4f2b98e60d3"
AWS = "wJ4lrXUtnFEMI/K7MDENG/bPxRfiCYq0Vz8sT1Ka"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow1bAAKC\nAQEAx3k9\n-----END RSA PRIVATE KEY-----"
SHAPES = {
    "AKIA" + "Q3EGRTZ4XW7LMNO2": "aws_access_key",
    "ghp_" + HEX + "Ab12": "github_token",
    "github_pat_" + HEX: "github_token",
    "glpat-" + "Zx8_k2LmQ0rT5vYw7nB3": "gitlab_token",
    "xoxb-" + "2849302-8473829-Kd93jsLq": "slack_token",
    "AIza" + "SyD3k9fLq0Xz7-mN2bV5cR8tW1yU4iO6pAz": "google_api_key",
    "sk_live_" + HEX: "stripe_key",
    "sk-proj-" + HEX: "model_api_key",
    "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ012345": "huggingface_token",
    "npm_" + HEX + "Ab12": "npm_token",
    "SG." + HEX + "." + HEX: "sendgrid_key",
    "SK" + HEX: "twilio_key",
    "sk-proj-" + "Ab1" * 16: "model_api_key",
    "sk-ant-api03-" + "Zx9_" * 20 + "AA": "model_api_key",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P": "jwt",
    KEY: "private_key",
}


def values(value: Any) -> set[str]:
    return {secret.value for secret in find(value)}


@pytest.mark.parametrize("secret", SHAPES)
def test_a_key_is_known_by_its_shape_wherever_it_stands(secret: str) -> None:
    kind = SHAPES[secret]
    for text in (secret, f"use {secret}, please", f'"{secret}"', f"x={secret}\n"):
        assert {(found.kind, found.value) for found in find_in_text(text)} == {(kind, secret)}
    assert {found.kind for found in find({"password": secret, "note": f"is {secret}"})} == {kind}
    assert kind in KINDS


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ({"password": "correcthorse"}, "correcthorse"),
        ({"auth": [{"DB_PASSWORD": "p4$$w0rd!"}]}, "p4$$w0rd!"),
        ({"headers": {"X-Api-Key": HEX}}, HEX),
        ({"Authorization": f"Bearer {HEX}"}, HEX),
        ({"headers": {"Set-Cookie": f"session={HEX}; Path=/; HttpOnly"}}, HEX),
        (f"Cookie: theme=dark; session={HEX}", HEX),
        (f"curl -H 'cookie: sid={HEX}; lang=en'", HEX),
        ({"Authorization": "Basic dXNlcjpwYXNzd29yZDEyMw=="}, "dXNlcjpwYXNzd29yZDEyMw=="),
        ({"tokens": 5, "access_token": HEX}, HEX),
        ('{"password": "hunter22"}', "hunter22"),
        ('{\\"password\\": \\"hunter22\\"}', "hunter22"),
        ("export API_KEY=" + HEX, HEX),
        (f"curl -H 'Authorization: Bearer {HEX}'", HEX),
        ("postgres://app:s3cretpw@db.example:5432/x", "s3cretpw"),
        ("the password: hunter2x is old", "hunter2x"),
        ({f"sk-{HEX}": 1}, f"sk-{HEX}"),
        ("mysql -u root -phunter2pass shop -e 'SELECT 1'", "hunter2pass"),
        ({"cmd": "mysqldump -uroot -p'hunter2pass' shop"}, "hunter2pass"),
        ('{"cmd": "sshpass -p hunter2pass ssh me@host"}', "hunter2pass"),
        ("curl -s -u admin:hunter2pass https://db.example/x", "hunter2pass"),
        (f"aws_secret_access_key = {AWS}", AWS),
        ({"SecretAccessKey": AWS}, AWS),
    ],
)
def test_a_name_or_a_place_gives_a_secret_away(value: Any, secret: str) -> None:
    assert values(value) == {secret}


@pytest.mark.parametrize(
    "value",
    [
        {"password": "********"},
        {"password": "<your password>"},
        {"password": "${DB_PASSWORD}"},
        {"password": None, "token": 17, "api_key": ""},
        {"properties": {"password": {"type": "string", "description": "The user's password"}}},
        {"next_page_token": HEX, "eos_token": "<|endoftext|>", "max_tokens": 512},
        {"commit": HEX, "sha256": HEX * 2, "id": "call_" + HEX, "trace": HEX},
        "password = getpass.getpass()",
        "def login(password: str, token: Token) -> None:",
        "token = self.tokenizer.next_token2",
        "the task-based sk-learn-like-pipeline-for-everything",
        "https://example.com:8080/a@b and git@github.com:a/b",
        "Bearer authentication is required",
        "Cookie: theme=dark; preferred_language=english-united-kingdom",
        "The cookie jar holds three cookies.",
        {"blob": AWS, "note": f"is {AWS}"},
        {"sku": "SK" + HEX[:20], "name": "TASK" + HEX, "sha": "SK" + HEX * 2},
        "mysql -u root -p shop; mysql -P 3306 -u root; mysql -print",
        "curl -u admin:$PASSWORD https://db.example; curl -u user:password x; mkdir -p hunter2pass",
        "sk-proj-your-key-goes-here-please and sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "eyJhbGciOiJIUzI1NiJ9 alone",
    ],
)
def test_what_only_looks_alike_is_no_secret(value: Any) -> None:
    assert values(value) == set()


def test_the_secret_behind_an_access_key_is_known_as_its_neighbour() -> None:
    access = "AKIA" + "Q3EGRTZ4XW7LMNO2"
    assert values(f"id,secret\n{access},{AWS}\n") == {access, AWS}
    assert values(f"{access} {AWS[:30]} and {AWS}") == {access}, "a text between them is no pair"


def test_a_secret_is_named_by_digest_and_its_value_is_in_no_words() -> None:
    (secret,) = find({"a/b": [{"password": "correcthorse"}]})
    assert secret.place == "/a~1b/0/password"
    assert secret.shown == f"<secret:credential:{secret.digest[:8]}>"
    assert "correcthorse" not in f"{secret!r}{secret.shown}{secret.digest}"


def test_a_key_in_lines_has_one_digest_however_its_lines_are_broken() -> None:
    texts = (KEY, KEY.replace("\n", "\r\n"), json.dumps(KEY), json.dumps(json.dumps(KEY)))
    assert len({secret.digest for text in texts for secret in find_in_text(text)}) == 1


def test_a_key_without_an_end_is_found_up_to_a_limit() -> None:
    (secret,) = find_in_text(KEY.partition("-----END")[0] + "A" * 100_000)
    assert 10_000 < len(secret.value) < 20_000


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_where_nothing_may_be_held_nothing_is_found(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    if not may_hold(text):
        assert not list(find(value))


HOSTILE = {
    "names": "password" * 4,
    "assignments": "password: ",
    "escapes": 'password:"' + "\\" * 40,
    "tokens": "eyJaaaaaaaaaaa.eyJ",
    "keys": "-----BEGIN PRIVATE KEY-----",
    "addresses": "://a:b",
    "bearers": "bearer aA1",
    "prefixes": "sk-a1B2xox-AKIA",
    "values": "token=Ab3",
    "spaces": "password" + " " * 40,
    "commands": "mysql -u curl -u a ",
    "pairs": "AKIAQ3EGRTZ4XW7LMNO2, ",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_looking_takes_time_in_proportion_to_the_text(name: str) -> None:
    def seconds(times: int) -> float:
        text = HOSTILE[name] * times
        started = time.perf_counter()
        for _ in find_in_text(text):
            pass
        return time.perf_counter() - started

    seconds(100)
    assert seconds(40_000) < 60 * max(seconds(4_000), 0.005)


def test_the_real_logs_hold_one_password_and_nothing_else_is_taken_for_a_secret(logs: Path) -> None:
    found: Counter[Secret] = Counter()
    for path in sorted(logs.rglob("*")):
        try:
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
        except UnicodeDecodeError:
            continue
        found.update(secret._replace(place="") for value in _values(text) for secret in find(value))
    print({secret.shown: count for secret, count in found.items()})
    assert {(secret.kind, secret.value) for secret in found} == {("credential", "1j1l-2k3j")}


def _values(text: str) -> list[Any]:
    try:
        return [json.loads(text)]
    except ValueError:
        return [_value(line) for line in text.splitlines()]


def _value(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line
