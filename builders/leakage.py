"""Whether a correction holds what was first seen after its branch point: an error's words, a later answer.

Words are compared as words, so that no part of a longer one counts. What the model could have known is no leak: the
prompt, the tools, its own decision but for the values that the correction replaced, and any value that derives from
the prompt.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from builders.candidate import Candidate, offered_tools
from curation.diagnosis.arguments import arguments_of, leaves
from curation.diagnosis.derivation import derive
from schemas.trajectory import Message, text_of

_WORD = re.compile(r"[\w-]+")
_SHORTEST = 3  # characters of a later word that says something
_NAME = re.compile(r".*[\d_]")  # a word of a fact beside the record that is no plain word


def leaked_word(candidate: Candidate, facts: Iterable[str] = ()) -> str | None:
    """A word of the corrected decision that was first seen after the branch point.

    Of ``facts``, which a side file gives and no template shows, only names count: words with a digit or underscore.
    """
    fork, parent = candidate.chosen.trajectory.fork, candidate.rejected
    if fork is None or parent is None:
        return None
    wrong, *later = parent.messages[fork.branch_point :]
    known = _words(_texts(candidate.prompt)) | _words([candidate.tools or ""])
    replaced = _words(_replaced(wrong, candidate.message)) - known
    seen = {word for word in _words(_texts(later)) if len(word) >= _SHORTEST} - known - _words(_texts([wrong]))
    said = _words([text_of(candidate.message.content), candidate.message.reasoning or ""]) | _words(
        _underived(candidate)
    )
    named = {word for word in _words(facts) if len(word) >= _SHORTEST and _NAME.match(word)}
    return min((said | named) & (replaced | seen), default=None)


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
