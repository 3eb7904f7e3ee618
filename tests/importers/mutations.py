"""Logs as they come out of crashes, editors and attacks: a log's values and bytes changed at random, from a seed."""

import copy
import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from random import Random
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

Kind = Literal["value", "lines", "list", "archive", "bytes"]
Values = dict[str, Any]


class Log(NamedTuple):
    """A small log of a format: its values by name, laid out as one value, as lines, as a list, as the members of an
    archive, or bytes that stay as they are; ``beside`` are the other files of its folder.
    """

    format: str
    name: str
    kind: Kind
    values: Values
    beside: Mapping[str, bytes] = MappingProxyType({})


CHANGED: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    10**400,
    1e308,
    float("nan"),
    "",
    "x",
    "\ud800",
    "\x00\x1b[31m",
    "[]",
    '{"a": 1}',
    "1970-01-01T00:00:00Z",
    [],
    {},
    [None],
    [[]],
    {"": {}},
    [{"role": "user"}],
    {"role": "assistant", "tool_calls": [{}]},
]


def mutate(log: Log, others: Sequence[Log], random: Random) -> bytes:
    """The bytes of a log that was changed in one to four places, the same for the same state of ``random``."""
    values = copy.deepcopy(log.values)
    changes = random.randint(1, 4)
    on_bytes = log.kind == "bytes" or random.random() < 0.3
    for _ in range(changes - on_bytes):
        _change_value(values, others, random)
    data = lay_out(log._replace(values=values), random)
    return random.choice(_BYTE_CHANGES)(data, random) if on_bytes else data


def lay_out(log: Log, random: Random) -> bytes:
    """A log's bytes, with the spaces, escapes and line ends that one writer or another uses."""
    written = {
        name: value if isinstance(value, bytes) else _written(value, log.kind == "lines", random)
        for name, value in log.values.items()
    }
    match log.kind:
        case "archive":
            return _packed(written)
        case "lines":
            end = random.choice((b"\n", b"\n", b"\n", b"\r\n", b"\n\n"))
            return b"".join(line + end for line in written.values())
        case "list":
            return b"[" + b",".join(written.values()) + b"]"
        case _:
            return b"".join(written.values())


def _written(value: Any, one_line: bool, random: Random) -> bytes:
    indent = None if one_line else random.choice((None, None, 1, 4))
    separators = random.choice(((",", ":"), (", ", ": ")))
    escaped = random.random() < 0.5
    text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=escaped, default=repr)
    return text.encode("utf-8", "surrogatepass")


def _packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def _change_value(values: Values, others: Sequence[Log], random: Random) -> None:
    """Change one place at any depth, each depth as likely as the next."""
    inside: Any = values
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        if not keys:
            return
        key = random.choice(keys)
        deeper = inside[key]
        if not isinstance(deeper, dict | list) or not deeper or random.random() < 0.15:
            break
        inside = deeper
    random.choice(_VALUE_CHANGES)(inside, key, keys, others, random)


def _drop(inside: Any, key: Any, *_: Any) -> None:
    del inside[key]


def _double(inside: Any, key: Any, *_: Any) -> None:
    again = copy.deepcopy(inside[key])
    if isinstance(inside, list):
        inside.insert(key, again)
    else:
        inside[f"{key}2"] = again


def _swap(inside: Any, key: Any, keys: list[Any], _: Any, random: Random) -> None:
    other = random.choice(keys)
    inside[key], inside[other] = inside[other], inside[key]


def _put(inside: Any, key: Any, _: Any, __: Any, random: Random) -> None:
    inside[key] = copy.deepcopy(random.choice(CHANGED))


def _nest(inside: Any, key: Any, _: Any, __: Any, random: Random) -> None:
    for _ in range(random.choice((1, 1, 2, 20, 100))):
        inside[key] = [inside[key]] if random.random() < 0.5 else {str(key): inside[key]}


def _encode(inside: Any, key: Any, *_: Any) -> None:
    """A value as the JSON text of it, or the value of a text that is JSON."""
    value = inside[key]
    try:
        inside[key] = json.loads(value) if isinstance(value, str) else json.dumps(value, default=repr)
    except (ValueError, RecursionError, TypeError):
        inside[key] = json.dumps(str(value))


def _graft(inside: Any, key: Any, _: Any, others: Sequence[Log], random: Random) -> None:
    """A piece of another log."""
    piece: Any = random.choice(others).values
    while isinstance(piece, dict | list) and piece and random.random() < 0.8:
        piece = random.choice(list(piece.values() if isinstance(piece, dict) else piece))
    inside[key] = copy.deepcopy(piece) if not isinstance(piece, bytes) else piece.hex()


def _rename(inside: Any, key: Any, keys: list[Any], _: Any, random: Random) -> None:
    if isinstance(inside, dict):
        inside[random.choice((str(key).upper(), "", "x" * 2_000, "\x00", "__proto__"))] = inside.pop(key)
    else:
        inside.reverse()


_VALUE_CHANGES: tuple[Callable[..., None], ...] = (_drop, _double, _swap, _put, _put, _nest, _encode, _graft, _rename)


def _truncate(data: bytes, random: Random) -> bytes:
    return data[: random.randint(0, len(data))]


def _flip(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        if changed:
            changed[random.randrange(len(changed))] = random.choice((0, 9, 10, 34, 44, 91, 92, 123, 125, 128, 255))
    return bytes(changed)


def _repeat(data: bytes, random: Random) -> bytes:
    start, end = sorted(random.randint(0, len(data)) for _ in range(2))
    return data[:end] + data[start:end] * random.randint(1, 3) + data[end:]


def _exchange(data: bytes, random: Random) -> bytes:
    """Two neighbouring pieces in each other's place."""
    start, middle, end = sorted(random.randint(0, len(data)) for _ in range(3))
    return data[:start] + data[middle:end] + data[start:middle] + data[end:]


def _transcode(data: bytes, random: Random) -> bytes:
    code = random.choice(("utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1", "cp037"))
    return data.decode("utf-8", "replace").encode(code, "replace")


def _surround(data: bytes, random: Random) -> bytes:
    around = ((b"[", b"]"), (b"\n\n", b""), (b'{"a":', b"}"), (b"[" * 5_000, b""), (b"\x00", b""))
    opening, closing = random.choice(around)
    return opening + data + closing


_BYTE_CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    _truncate,
    _truncate,
    _flip,
    _flip,
    _repeat,
    _exchange,
    _transcode,
    _surround,
)
