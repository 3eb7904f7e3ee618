"""Secrets in a record: keys, tokens and passwords, told by their shape or by the name that stands before them.

Pure and linear in the text: every repetition is bounded, no pattern runs unless a fixed word of it is there, and how
random a text looks counts only where a name or a known prefix says what it is. The kind of a secret follows from its
value alone, so that the same secret is the same everywhere; one that only its place gives away is a ``credential``.
"""

import re
from collections import Counter
from collections.abc import Iterator
from math import log2
from typing import Any, NamedTuple

from schemas.canonical import digest

RULE = "secrets@1"
SHOWN_DIGITS = 8
CREDENTIAL = "credential"
PRIVATE_KEY = "private_key"

MAX_KEY_CHARACTERS = 16_384  # of a private key whose end is missing
_RANDOM_LENGTH = 16
_SHORTEST = 9  # characters of a text in which something else than the text itself gives a secret away
_RANDOM_BITS = 3.0  # a character

_NOT_BEFORE = r"(?<![A-Za-z0-9_-])"
_SHAPES: tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...] = tuple(
    (kind, tuple(words.split()), re.compile(_NOT_BEFORE + pattern))
    for kind, words, pattern in (
        ("jwt", "eyJ", r"eyJ[\w-]{8,4096}\.eyJ[\w-]{8,8192}\.[\w-]{16,2048}"),
        ("aws_access_key", "AKIA ASIA", r"(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[opusr]_[A-Za-z0-9]{30,255}"),
        ("github_token", "github_pat_", r"github_pat_\w{22,255}"),
        ("gitlab_token", "glpat-", r"glpat-[\w-]{20,64}"),
        ("slack_token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,250}"),
        ("google_api_key", "AIza", r"AIza[\w-]{35}(?![\w-])"),
        ("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
        ("model_api_key", "sk-", r"sk-[\w-]{16,250}"),
        ("model_api_key", "gsk_", r"gsk_[A-Za-z0-9]{40,64}"),
        ("huggingface_token", "hf_", r"hf_[A-Za-z0-9]{30,64}"),
        ("langsmith_key", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
        ("npm_token", "npm_", r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
        ("pypi_token", "pypi-", r"pypi-[\w-]{50,512}"),
        ("sendgrid_key", "SG.", r"SG\.[\w-]{16,64}\.[\w-]{16,64}"),
        ("twilio_key", "SK", r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    )
)
KINDS = tuple(sorted({CREDENTIAL, PRIVATE_KEY, *(kind for kind, _, _ in _SHAPES)}))

_PASSWORDS = r"password|passwd|passphrase"
_TOKENS = (
    r"secret|api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|account[_-]?key|token|authorization|credentials?"
)
_SCHEME = r"(?:(?:basic|bearer|token)\s{1,4})?"
_ASSIGNED = re.compile(
    r"""["'\\]{0,4}\s{0,4}(?:=>|:=|[:=])\s{0,4}"""
    rf"""(?:["'\\]{{1,4}}{_SCHEME}(?P<quoted>[^\s"'\\]{{4,1024}})["'\\]"""
    rf"""|{_SCHEME}(?P<bare>[^\s"'<>,;(){{}}\[\]\\$&*]{{8,1024}}))""",
    re.IGNORECASE | re.ASCII,
)
_NAMES = "password passwd passphrase secret key token authorization credential credentials".split()
_NAMES_OF_PASSWORDS = _NAMES[:3]
_KIND_OF_KEY = re.compile(r"(?:api|access|secret|private|account)[_-]?\Z")
_BEARER = re.compile(r"\bbearer\s{1,4}([A-Za-z0-9._~+/=-]{16,4096})", re.IGNORECASE | re.ASCII)
_ADDRESS = re.compile(r"""://[^\s/:@"'<>]{0,128}:([^\s/@"'<>]{3,256})@[A-Za-z0-9\[]""")
# A model's key that says whose it is: no word of a sentence begins like that, so that it need not be random.
_MARKED = re.compile(r"sk-(?:proj|svcacct|admin|or-v1|ant-[a-z]{3,8}\d\d)-(?=[\w-]{20})")
# A secret of AWS looks like any Base64: only a name before it, or its access key, tells what it is.
_AFTER_ACCESS_KEY = re.compile(
    r"""(?:AKIA|ASIA)[A-Z0-9]{16}["'\\\s,;:|]{1,8}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])""", re.ASCII
)
_COMMANDS = ("mysql", "mariadb", "sshpass", "curl")
_IN_COMMAND = re.compile(
    r"(?:\b(?:mysql|mysqladmin|mysqldump|mariadb|mariadb-dump) [^\n;|&]{0,200}?(?<= )-p"
    r"|\bsshpass {1,4}-p {0,4}"
    r"|\bcurl [^\n;|&]{0,200}?(?<= )(?:-u {0,4}|--user[ =]{1,4})[\"'\\]{0,2}[^\s:\"'\\]{1,64}:)"
    r"[\"'\\]{0,2}(?P<value>[^\s\"'\\;|&]{4,128})",
    re.ASCII,
)
_COOKIES = re.compile(r"""\bcookie["']?\s{0,2}:\s{0,2}["']?([^\r\n"'\\]{1,4096})""", re.IGNORECASE | re.ASCII)
_COOKIE = re.compile(r"[\w.-]{1,64}=([^;,\s\"'\\]{16,4096})", re.ASCII)
_KEY_MARK = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")

_LINE_BREAK = re.compile(r"\\{1,4}[nr]|\s")

_KEY_NAME = re.compile(rf"(?:(?P<password>{_PASSWORDS})|{_TOKENS})\Z", re.IGNORECASE | re.ASCII)
_SCHEME_BEFORE = re.compile(_SCHEME, re.IGNORECASE)
# Names that end like one of a secret and hold none: marks of a tokeniser, pages of a listing.
_NO_SECRET = re.compile(
    r"(?:next|page|continuation|cursor|sync|eos|bos|pad|unk|sep|cls|mask|stop|start|end|special|first|last|per|csrf)"
    r"[_-]?\Z",
    re.IGNORECASE,
)
_STAND_IN = re.compile(
    r"(?:(?:my|your|the|a|new|old|user|current|some|test|db|enter)[_-]?){0,2}"
    r"(?:password|passwd|pass|secret|token|api[_-]?key|key|value|string|str|placeholder|example|here|none|null|true"
    r"|false|undefined|redacted|hidden|changeme|optional|required)|[x*._#-]{1,200}|[<\[{%$].{0,200}",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)
_RANDOM = re.compile(r"[\w+/=.~:-]{1,4096}", re.ASCII)
_CODE = re.compile(r"[A-Za-z_]\w{0,64}(?:\.[A-Za-z_]\w{0,64}){1,8}", re.ASCII)


_TWILIO = re.compile(r"SK[0-9a-f]{32}")
_MARKS = ("://", "-----BEGIN", *_COMMANDS, *(word for _, words, _ in _SHAPES for word in words if word != "SK"))
_WORDS = ("passw", "passphrase", "secret", "key", "token", "authorization", "credential", "bearer", "cookie")
_SMALL = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


class Secret(NamedTuple):
    """A secret, and the JSON pointer of the text that holds it. Its value is in no representation of it."""

    kind: str
    value: str
    place: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of the value, its name everywhere; of a key in lines, however these are broken or escaped."""
        value = _LINE_BREAK.sub("", self.value) if self.kind == PRIVATE_KEY else self.value
        return digest(value.encode("utf-8", "surrogatepass"))

    @property
    def shown(self) -> str:
        """What stands in its place."""
        return f"<secret:{self.kind}:{self.digest[:SHOWN_DIGITS]}>"

    def __repr__(self) -> str:
        return f"Secret({self.shown!r}, place={self.place!r})"


def may_hold(text: str) -> bool:
    """Whether a text holds any word that a secret has in or before it; much faster than looking for secrets."""
    for mark in _MARKS:
        if mark in text:
            return True
    if "SK" in text and _TWILIO.search(text):
        return True
    folded = text.lower()
    return any(word in folded for word in _WORDS)


def find(value: Any) -> Iterator[Secret]:
    """The secrets in a JSON value, place by place, each as often as it stands there."""
    pending: list[tuple[str, str, Any]] = [("", "", value)]
    while pending:
        place, name, item = pending.pop()
        match item:
            case str():
                yield from _in_string(place, name, item)
            case dict():
                pending.extend((f"{place}/{_escaped(key)}", key, inner) for key, inner in reversed(item.items()))
                for key in item:
                    if len(key) >= _RANDOM_LENGTH:
                        yield from (secret._replace(place=place) for secret in find_in_text(key))
            case list():
                pending.extend((f"{place}/{at}", name, item[at]) for at in range(len(item) - 1, -1, -1))


def find_in_text(text: str) -> Iterator[Secret]:
    """The secrets in one text, by what they look like and by the names before them."""
    if len(text) < _SHORTEST or not may_hold(text):
        return
    for kind, words, pattern in _SHAPES:
        if any(word in text for word in words):
            for found in pattern.finditer(text):
                if kind != "model_api_key" or _is_model_key(found[0]):
                    yield Secret(kind, found[0])
    if "-----BEGIN" in text:
        yield from _private_keys(text)
    yield from map(_by_place, _given_away(text))


def _in_string(place: str, name: str, text: str) -> Iterator[Secret]:
    """The secrets of one string; ``name`` is the key that it stands under, itself or in a list."""
    for secret in find_in_text(text):
        yield secret._replace(place=place)
    if name.lower().endswith("cookie"):
        yield from (_by_place(value)._replace(place=place) for value in _cookies(text))
    named = _KEY_NAME.search(name[-40:]) if name else None
    if named is not None and not _NO_SECRET.search(name[-40:][: named.start()]):
        value = _SCHEME_BEFORE.sub("", text, count=1)
        if _looks(value, password=named["password"] is not None, bare=False):
            yield _by_place(value)._replace(place=place)


def _given_away(text: str) -> Iterator[str]:
    """Values that an address, a scheme, a command or a name in the text says to be secret."""
    if "://" in text:
        yield from (found[1] for found in _ADDRESS.finditer(text) if not _STAND_IN.fullmatch(found[1]))
    if "AKIA" in text or "ASIA" in text:
        yield from (found[1] for found in _AFTER_ACCESS_KEY.finditer(text) if _is_random(found[1]))
    if any(word in text for word in _COMMANDS):
        values = (found["value"] for found in _IN_COMMAND.finditer(text))
        yield from (value for value in values if _looks(value, password=True, bare=True))
    folded = _folded(text)
    if "bearer" in folded:
        yield from (found[1] for found in _BEARER.finditer(text) if _is_random(found[1]))
    if "cookie" in folded:
        yield from (value for found in _COOKIES.finditer(text) for value in _cookies(found[1]))
    for name in _NAMES:
        if name in folded:
            yield from _named(text, folded, name)


def _cookies(header: str) -> Iterator[str]:
    """The values in what a Cookie header says that nobody could guess."""
    return (found[1] for found in _COOKIE.finditer(header) if _is_random(found[1]))


def _named(text: str, folded: str, name: str) -> Iterator[str]:
    """What is assigned to a name wherever it stands in the text."""
    end = 0
    while (at := folded.find(name, end)) >= 0:
        end = at + len(name)
        found = _ASSIGNED.match(text, end)
        if found is None or _names_none(folded, name, at):
            continue
        bare = found["bare"]
        value = found["quoted"] if bare is None else bare.rstrip(".:!?|`")
        if _looks(value, password=name in _NAMES_OF_PASSWORDS, bare=bare is not None):
            yield value


def _names_none(folded: str, name: str, at: int) -> bool:
    """Whether what stands before a name makes it one of no secret, or of a placeholder."""
    before = max(0, at - 16)
    if name == "key" and not _KIND_OF_KEY.search(folded, before, at):
        return True
    return folded[at - 1 : at] == "<" or _NO_SECRET.search(folded, before, at) is not None


def _folded(text: str) -> str:
    """A text in small letters, of the same length."""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.translate(_SMALL)


def _private_keys(text: str) -> Iterator[Secret]:
    start: int | None = None
    for mark in _KEY_MARK.finditer(text):
        if mark[1] == "BEGIN":
            if start is not None:
                yield _key(text[start : min(mark.start(), start + MAX_KEY_CHARACTERS)])
            start = mark.start()
        elif start is not None:
            yield _key(text[start : mark.end()])
            start = None
    if start is not None:
        yield _key(text[start : start + MAX_KEY_CHARACTERS])


def _key(text: str) -> Secret:
    return Secret(PRIVATE_KEY, text)


def _by_place(value: str) -> Secret:
    """A secret that a name or its place gave away; of the kind of its shape where it has one."""
    for kind, words, pattern in _SHAPES:
        if value.startswith(words) and pattern.fullmatch(value):
            return Secret(kind, value)
    return Secret(CREDENTIAL, value)


def _looks(value: str, *, password: bool, bare: bool) -> bool:
    """Whether what stands after a name is a secret: any word after that of a password, if not bare; else a random one.

    ``bare``: it stands in a text without quotes, where it may be a piece of code or of a sentence.
    """
    if _STAND_IN.fullmatch(value) or not 4 <= len(value) <= 4096:
        return False
    if not password:
        return _is_random(value)
    if any(character.isspace() for character in value):
        return False
    return not bare or (_is_mixed(value) and not _CODE.fullmatch(value) and "/" not in value)


def _is_model_key(text: str) -> bool:
    marked = _MARKED.match(text)
    return _is_random(text) or (marked is not None and _is_mixed(text[marked.end() :]))


def _is_random(value: str) -> bool:
    """Whether a text is long and mixed enough to be drawn at random."""
    if len(value) < _RANDOM_LENGTH or not _RANDOM.fullmatch(value) or not _is_mixed(value):
        return False
    if _CODE.fullmatch(value):
        return False
    counts = Counter(value).values()
    return sum(count * log2(len(value) / count) for count in counts) / len(value) >= _RANDOM_BITS


def _is_mixed(value: str) -> bool:
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
