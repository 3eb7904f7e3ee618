from pathlib import Path

import jsonschema
import msgspec
import pytest

from schemas import published
from schemas.canonical import encode
from schemas.publish import documents
from schemas.statements import Annotation
from schemas.trajectory import Author, Message, ToolCall, Trajectory

FOLDER = Path(published.__file__).parent


def test_the_files_are_what_the_structs_say() -> None:
    files = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    assert files == documents(), "run: python -m schemas.published"


@pytest.mark.parametrize("name", sorted(documents()))
def test_each_is_a_json_schema(name: str) -> None:
    schema = msgspec.json.decode(documents()[name])
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "1 and 1.0 are different" in schema["$comment"]


def test_stored_bytes_satisfy_their_schema() -> None:
    call = ToolCall("0.0", "get_stock", '{"sku": "A17"}', arguments=msgspec.Raw(b'{"sku":"A17"}'))
    trajectory = Trajectory((Message("assistant", None, tool_calls=(call,)),))
    annotation = Annotation("0" * 64, "strata.difficulty", "easy", Author("side_file"))
    for name, record in (("trajectory.json", trajectory), ("annotation.json", annotation)):
        schema = msgspec.json.decode(documents()[name])
        stored = msgspec.json.decode(encode(record))
        jsonschema.validate(stored, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(stored | {"invented": 1}, schema)
