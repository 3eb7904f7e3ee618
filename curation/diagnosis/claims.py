"""``result_interpretation``: a message claims an effect that no call can have had.

What counts as a claim, and which tool makes it true, is the environment's declaration. Abstains wherever the claim
could be true: a write whose fate is unknown, a change of state by another tool, an answer that says the same.
"""

import re
from collections.abc import Iterator

from curation.diagnosis.evidence import Reading, shown
from environments.protocol import Claim, EnvSpec
from schemas.statements import Evidence, Finding
from schemas.trajectory import Reads, text_of

MAX_TEXT = 20_000  # characters of a message that are read
_SENTENCE = re.compile(r"[^.!?。！？;；\n]+[.!?。！？;；\n]?")
_UNSURE = re.compile(
    r"\b(?:not|no|never|none|nothing|neither|nor|without|cannot|unable|fail(?:ed|s|ure)?|unfortunately|if|unless|once"
    r"|when|after|before|until|will|would|shall|should|could|can|may|might|must|going to|to be|want|wish|need|fully"
    r"|already|previously|someone|other|others|try|tried|trying|attempt(?:ed|ing)?|pending|whether)\b"
    r"|n['’]t\b|['’]ll\b|[?？]"
    r"|[未没不无尚将会能若吗请]|如果|是否|可以|需要|失败|别人|他人|之前|稍后",
    re.IGNORECASE,
)


def find(reading: Reading) -> Iterator[Finding]:
    """False claims in messages without a call; none without an environment that declares what a claim is."""
    spec = reading.case.spec
    if spec is None:
        return
    for index, message in enumerate(reading.messages):
        if message.role == "assistant" and not message.tool_calls:
            text = text_of(message.content)[:MAX_TEXT]
            for claim in spec.claims:
                span = _claimed(claim, text)
                backing = None if span is None else _no_effect(reading, spec, claim, index)
                if span is not None and backing is not None:
                    said = Evidence("claim", index, start=span[0], end=span[1], value=shown(text[slice(*span)]))
                    reads: tuple[Reads, ...] = ("observation", "state") if len(backing) > 1 else ("observation",)
                    evidence = (said, *backing)
                    yield reading.finding("result_interpretation", index, "claim_without_action", evidence, reads)
                    break


def _claimed(claim: Claim, text: str) -> tuple[int, int] | None:
    """Where the text makes the claim in a sentence that neither denies, nor asks, nor promises, nor supposes it."""
    for sentence in _SENTENCE.finditer(text):
        match = claim.pattern.search(text, *sentence.span())
        if match is not None and not _UNSURE.search(sentence[0]):
            return match.span()
    return None


def _no_effect(reading: Reading, spec: EnvSpec, claim: Claim, before: int) -> tuple[Evidence, ...] | None:
    """What shows that the claimed effect cannot have happened before a message, or None where it may have."""
    calls = [call for index, call in reading.calls if index < before]
    for call in calls:
        ending = reading.ending(call.uid)
        if call.name == claim.tool and ending == "ok":
            return None
        if spec.effects.get(call.name, "write") != "read" and ending != "failed" and not _unchanged(reading, call.uid):
            return None
        if ending != "unanswered" and claim.pattern.search(reading.answers[call.uid].text[:MAX_TEXT]):
            return None
    absent = Evidence("absence", value=claim.tool, note=f"no call of {claim.tool} answered before message {before}")
    return (absent, *_states(reading, [call.uid for call in calls]))


def _unchanged(reading: Reading, uid: str) -> bool:
    execution = reading.executions.get(uid)
    return execution is not None and None is not execution.state_before == execution.state_after


def _states(reading: Reading, calls: list[str]) -> tuple[Evidence, ...]:
    """The state before the first and after the last call, where both are known and equal."""
    first, last = (reading.executions.get(uid) for uid in (calls[0], calls[-1])) if calls else (None, None)
    if first is None or last is None or None is first.state_before or first.state_before != last.state_after:
        return ()
    return (
        Evidence("state", call=calls[0], value=first.state_before, note="before the first call"),
        Evidence("state", call=calls[-1], value=last.state_after, note="after the last call"),
    )
