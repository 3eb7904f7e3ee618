"""Whether a correction holds what was first seen after its branch point: an error's words, a later answer.

Words are compared as words, so that no part of a longer one counts. What the model could have known is no leak: the
prompt, the tools, its own decision but for the values that the correction replaced, and any value that derives from
the prompt.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from builders.candidate import Candidate, Facts, offered_tools
from curation.diagnosis.arguments import arguments_of, leaves
from curation.diagnosis.derivation import derive, underivable
from curation.diagnosis.evidence import ERRORS
from curation.diagnosis.tokens import is_name
from schemas.trajectory import Message, text_of

_WORD = re.compile(r"[\w-]+")
_SHORTEST = 3  # characters of a later word that says something
_NAME = re.compile(r".*[\d_]")  # a word of a fact beside the record that is no plain word


class Past(NamedTuple):
    """What is known after the branch point of a correction and not before it.

    ``own`` is the decision of the model, ``wrong`` that and those of later forks of the same place, which the
    correction replaces; ``errors`` are the answers of ``own`` where it failed, ``later`` all that followed.
    """

    own: Message
    wrong: tuple[Message, ...]
    errors: tuple[Message, ...]
    later: tuple[Message, ...]


def past_of(candidate: Candidate) -> Past | None:
    """What followed in every ancestor of a clean fork; None for an attempt, and for what may know of its mistake."""
    fork = candidate.chosen.trajectory.fork
    if fork is None or fork.kind == "recovery" or not candidate.ancestors:
        return None
    point, same = fork.branch_point, True
    wrong: list[Message] = []
    later: list[Message] = []
    own = candidate.ancestors[0]
    for ancestor in candidate.ancestors:
        if same:
            own = ancestor
            wrong.append(ancestor.messages[point])
        later.extend(ancestor.messages[point + 1 if same else point :])
        if (origin := ancestor.trajectory.fork) is not None:
            same = same and origin.kind == "clean" and origin.branch_point == point
            point = min(point, origin.branch_point)
    at = fork.branch_point
    uids = {call.uid for call in own.messages[at].tool_calls}
    failed = any(run.status in ERRORS for run in candidate.ancestors[0].executions(at))
    errors = tuple(
        message
        for message in own.messages[at + 1 :]
        if message.answers is not None and message.answers.uid in uids and (failed or message.error is not None)
    )
    return Past(own.messages[at], tuple(wrong), errors, tuple(later))


def leaked_word(candidate: Candidate) -> str | None:
    """A word of the corrected decision, or of what the side file says of its task, first seen after the branch point.

    Of the side file's words, which no template shows, the replaced values count, the words of the error in its strata,
    and of all that followed the names: words with a digit or underscore.
    """
    past = past_of(candidate)
    if past is None:
        return None
    known = _words(_texts(candidate.prompt)) | _words([candidate.tools or ""])
    replaced = _words(text for wrong in past.wrong for text in _replaced(wrong, candidate.message)) - known
    seen = _long(_words(_texts(past.later))) - known - _words(_texts([past.own]))
    said = _words([text_of(candidate.message.content), candidate.message.reasoning or ""]) | _words(
        _underived(candidate)
    )
    if leaked := min(said & (replaced | seen), default=None):
        return leaked
    if leaked := next(_seen_values(candidate, past), None):
        return leaked
    strata = _parts(text for facts in _facts(candidate) for text in (*facts.strata, *facts.strata.values()))
    names = _parts(text for facts in _facts(candidate) for text in (facts.namespace, facts.task) if text)
    errors = _parts(_texts(past.errors)) - known - _words(_texts([past.own]))
    later = {word for word in seen if _NAME.match(word)}
    return min(_long((strata | names) & (replaced | later) | strata & errors), default=None)


def texts_of(past: Past) -> list[Message]:
    """All that followed, as somebody else's messages, with and without underscores in its words."""
    texts = dict.fromkeys(text for text in _texts(past.later) if text)
    spaced = dict.fromkeys(text.replace("_", " ") for text in texts)
    return [Message("tool", text) for text in {**texts, **spaced}]


def _seen_values(candidate: Candidate, past: Past) -> Iterator[str]:
    """The new values that follow from nothing in the prompt and from something that came later, however short."""
    schemas = offered_tools(candidate.tools)
    later = texts_of(past)
    for call in candidate.message.tool_calls:
        before = next((item for item in past.own.tool_calls if item.uid == call.uid or item.name == call.name), None)
        arguments, old = arguments_of(call), None if before is None else arguments_of(before)
        values = dict(leaves(arguments))
        for path in underivable(arguments, candidate.prompt, schemas.get(call.name), old):
            parts = [part for part in str(values[path]).split("_") if is_name(part)]
            unknown = [part for part in parts if derive(part, candidate.prompt) is None]
            if any(_stands_in(value, later) for value in (values[path], *unknown)):
                yield str(values[path])


def _stands_in(value: Any, messages: Sequence[Message]) -> bool:
    found = derive(value, messages)
    return found is not None and found.how not in ("constant", "arithmetic")


def _facts(candidate: Candidate) -> tuple[Facts, ...]:
    return (candidate.facts,) if candidate.other is None else (candidate.facts, candidate.other)


def _parts(texts: Iterable[str]) -> set[str]:
    """Words, and the parts of such as are joined."""
    return {part for word in _words(texts) for part in (word, *re.split("[_-]+", word))}


def _long(words: Iterable[str]) -> set[str]:
    return {word for word in words if len(word) >= _SHORTEST}


def _underived(candidate: Candidate) -> Iterator[str]:
    schemas = offered_tools(candidate.tools)
    for call in candidate.message.tool_calls:
        for path, value in leaves(arguments_of(call)):
            if derive(value, candidate.prompt, schemas.get(call.name), path) is None:
                yield str(value)


def _replaced(wrong: Message, right: Message) -> Iterator[str]:
    kept = set(map(str, _values(right)))
    yield from (text for value in _values(wrong) if (text := str(value)) not in kept)


def _values(message: Message) -> Iterator[Any]:
    for call in message.tool_calls:
        arguments = arguments_of(call)
        if arguments is None:
            yield call.arguments_text
        else:
            yield from (value for _, value in leaves(arguments))


def _texts(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        yield text_of(message.content)
        yield message.reasoning or ""
        yield message.raw or ""
        if message.error is not None:
            yield message.error.message
        yield from map(str, _values(message))


def _words(texts: Iterable[str]) -> set[str]:
    return {word.casefold() for text in texts for word in _WORD.findall(text)}
