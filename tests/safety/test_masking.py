"""Secrets of a log are named at import and masked alike in all that leaves the store, which keeps them."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.errors import UsageError
from curation.jobs.exporting import export_trajectories
from curation.masking import Mask, read_mask
from curation.secrets import Secret, find
from curation.store import Store
from schemas.rows import TRAINING_COLUMNS, sample_id
from schemas.statements import Annotation
from tests.builders.desk import Desk
from tests.cli.test_store_verbs import curate, refused, result
from tests.eight import TOOLS, look_up, say
from tests.ingest.logs import import_lines, new_store, write

PASSWORD = "blue-Otter"  # noqa: S105
KEY = "sk-proj-4f9a1c7be0d25386aa17c4f2b98e60d3"
REQUEST = f"stock of A17 or A18? my pass is {PASSWORD}."
LOGIN = ("get_stock", {"sku": "A17", "password": PASSWORD})
ANSWER = json.dumps({"stock": 2, "note": f"line\n{PASSWORD} and {KEY}"})


def shown(value: str, kind: str = "credential") -> str:
    return Secret(kind, value).shown


def line(run: str, request: str = REQUEST, **arguments: str) -> dict[str, Any]:
    function = {"name": "get_stock", "arguments": json.dumps({"sku": "A17", **arguments})}
    call = {"id": "c1", "type": "function", "function": function}
    return {
        "id": run,
        "messages": [
            {"role": "user", "content": request},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": ANSWER},
            say("Done."),
        ],
        "tools": TOOLS,
    }


def test_an_import_names_secrets_by_kind_digest_and_place(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    read = import_lines(store, tmp_path, [line("a", password=PASSWORD), line("b"), {"messages": [say("No.")]}])
    assert read.secrets == {"credential": 1, "model_api_key": 1}
    places = {(found.place, found.kind, found.digest, found.at) for found in read.secret_places}
    digests = {value: Secret("", value).digest[:8] for value in (PASSWORD, KEY)}
    assert places == {
        (1, "credential", digests[PASSWORD], "/messages/1/tool_calls/0/arguments/password"),
        (1, "model_api_key", digests[KEY], "/messages/2/content"),
        (2, "model_api_key", digests[KEY], "/messages/2/content"),
    }
    again = import_lines(store, tmp_path, [line("a", password=PASSWORD)], "again.jsonl")
    assert (again.duplicates, again.secrets) == (1, {"credential": 1, "model_api_key": 1})
    statements = store.sql("SELECT record FROM annotations WHERE field = 'secrets'")["record"].to_pylist()
    assert len(statements) == 2
    for record in statements:
        assert msgspec.json.decode(record, type=Annotation).author.name == "secrets"
        assert PASSWORD not in record
        assert KEY not in record


def test_all_secrets_of_a_record_are_counted_however_many_there_are(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    words = {f"db_{number}_password": f"{PASSWORD}{number:03}" for number in range(250)}
    read = import_lines(store, tmp_path, [line("a", **words)])
    assert read.secrets["credential"] == len(words)
    (said,) = store.sql("SELECT value FROM annotations WHERE field = 'secrets'")["value"].to_pylist()
    assert len(json.loads(said)) == len(words) + 1, "and the key in the answer"
    assert not [value for value in words.values() if value in said]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """A desk at which one attempt names a password, and another has it in its request alone."""
    made = Desk(tmp_path)
    told = {"stock": 2, "note": f"line\n{PASSWORD} and {KEY}"}
    made.attempt(REQUEST, LOGIN, told, run="named")
    made.attempt(REQUEST, ("get_stock", {"sku": "A17", "city": PASSWORD}), told, ("get_stock", {"sku": "A18"}), told)
    return made


def test_a_secret_is_masked_alike_in_every_row_and_kept_in_the_store(desk: Desk) -> None:
    built = desk.build("first_action")
    rows = [json.loads(row) for row in desk.rows("first_action")]
    text = b"".join(desk.rows("first_action")).decode()
    assert built.masked == {"credential": 1, "model_api_key": 1}
    assert len(rows) == 3
    assert PASSWORD not in text
    assert KEY not in text
    calls = [row["completion"][0]["tool_calls"][0]["function"]["arguments"] for row in rows]
    assert {"sku": "A17", "password": shown(PASSWORD)} in calls
    assert {"sku": "A17", "city": shown(PASSWORD)} in calls
    assert {row["prompt"][0]["content"] for row in rows} == {f"stock of A17 or A18? my pass is {shown(PASSWORD)}."}
    (answer,) = (message["content"] for row in rows for message in row["prompt"] if message["role"] == "tool")
    assert json.loads(answer)["note"] == f"line\n{shown(PASSWORD)} and {shown(KEY, 'model_api_key')}"
    for row in rows:
        assert row["sample_id"] == sample_id(
            "first_action", {name: row[name] for name in TRAINING_COLUMNS["first_action"]}
        )
    kept = "".join(desk.store.sql("SELECT record FROM trajectories")["record"].to_pylist())
    assert PASSWORD in kept
    assert KEY in kept


def test_a_secret_that_is_waived_by_digest_stays_readable(desk: Desk) -> None:
    masked = desk.build("first_action")
    digest = Secret("", PASSWORD).digest
    for name in (digest, digest[:8]):
        waived = desk.build("first_action", allowed_secrets=[name])
        text = b"".join(desk.rows("first_action")).decode()
        assert PASSWORD in text
        assert KEY not in text
        assert waived.masked == {"model_api_key": 1}
        assert waived.build != masked.build
    manifest = json.loads((desk.out / "manifest.json").read_bytes())
    assert manifest["options"]["allowed_secrets"] == [digest[:8]]
    assert manifest["masked"] == {"model_api_key": 1}
    with pytest.raises(UsageError, match="--allow-secret 'hunter2'"):
        desk.build("first_action", allowed_secrets=["hunter2"])


def test_what_is_judged_is_the_record_as_it_is_stored(desk: Desk) -> None:
    plain = Desk(desk.folder / "plain")
    told = {"stock": 2, "note": "line\nfine and well"}
    plain.attempt(REQUEST.replace(PASSWORD, "x"), ("get_stock", {"sku": "A17"}), told, run="named")
    plain.attempt(
        REQUEST.replace(PASSWORD, "x"), ("get_stock", {"sku": "A17"}), told, ("get_stock", {"sku": "A18"}), told
    )
    assert (
        desk.build("first_action").kinds["first_action"].refused
        == plain.build("first_action").kinds["first_action"].refused
    )


@pytest.mark.parametrize("form", ["openai-chat", "atif"])
def test_exports_are_masked_and_their_arguments_stay_json(tmp_path: Path, form: str) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [line("a", password=PASSWORD), line("b", city=PASSWORD)])
    identities = store.sql("SELECT id FROM trajectories")["id"].to_pylist()
    done = export_trajectories(store, identities, form, tmp_path / "out")
    assert done.masked == {"credential": 1, "model_api_key": 1}
    text = "".join(Path(path).read_text() for path in done.files)
    assert PASSWORD not in text
    assert KEY not in text
    for arguments in re.findall(r'"arguments":("(?:[^"\\]|\\.)*")', text):
        assert shown(PASSWORD) in json.loads(json.loads(arguments)).values()
    open_ = export_trajectories(store, identities, form, tmp_path / "open", [Secret("", PASSWORD).digest[:8]])
    assert PASSWORD in "".join(Path(path).read_text() for path in open_.files)


def test_the_verbs_mask_and_take_a_waiver(tmp_path: Path) -> None:
    write(tmp_path / "log.jsonl", [line("a", password=PASSWORD)])
    curate(tmp_path, "init")
    said = result(tmp_path, "import", "log.jsonl")
    assert said["secrets"] == {"credential": 1, "model_api_key": 1}
    printed = curate(tmp_path, "import", "log.jsonl").stdout
    assert Secret("", PASSWORD).digest[:8] in printed
    assert PASSWORD not in printed
    digest = said["secret_places"][0]["digest"]
    for waiver, held in (((), False), (("--allow-secret", digest), True)):
        done = result(tmp_path, "export", "openai-chat", "a", "--out", "out", *waiver)
        assert (PASSWORD in (tmp_path / done["files"][0]).read_text()) is held
    assert result(tmp_path, "build", "--out", "rows", "--allow-secret", digest)["masked"] == {}
    assert "--allow-secret" in refused(tmp_path, "build", "--out", "rows", "--allow-secret", "x")


texts = st.text(st.sampled_from('ab1" \\n:\n') | st.characters(codec="utf-8"), max_size=30)


@given(secret=st.text(st.sampled_from('nrtu1a\\"/$-'), min_size=6, max_size=20), before=texts, after=texts)
def test_json_text_with_a_masked_value_is_json_still(secret: str, before: str, after: str) -> None:
    mask = Mask({secret: Secret("credential", secret)})
    text = json.dumps({"k": f"{before} {secret} {after}", secret: [secret]})
    masked = json.loads(mask.apply({"arguments": text})["arguments"])
    assert shown(secret) in masked
    assert masked[shown(secret)] == [shown(secret)]


@given(names=st.lists(st.sampled_from([PASSWORD, KEY, "word"]), min_size=1), fill=texts)
def test_no_secret_is_left_and_masking_twice_changes_nothing(names: list[str], fill: str) -> None:
    value = {"calls": [{"password": name, "text": f"{fill} {name}"} for name in names]}
    masked = Mask({}).apply(value)
    assert not list(find(masked))
    assert Mask({}).apply(masked) == masked


def test_many_known_secrets_cost_a_row_no_more_than_those_in_it(tmp_path: Path) -> None:
    known = {f"Secret{number:06}": Secret("credential", f"Secret{number:06}") for number in range(20_000)}
    near = Mask(known).within(['{"a":"Secret000017"}', None, "{}"])
    assert near.apply(["Secret000017", "Secret000018"]) == [shown("Secret000017"), "Secret000018"]


def test_a_store_without_secrets_masks_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [{"messages": [{"role": "user", "content": "x"}, *look_up("c", "A17", "{}")]}])
    value = {"messages": ["x"]}
    assert read_mask(Store.open(store.uri)).apply(value) is value
