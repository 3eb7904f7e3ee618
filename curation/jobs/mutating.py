"""How much the comparisons of a store's replays are worth: mutation scores over the answers that they confirmed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from curation.diagnosis.evidence import ERRORS
from curation.jobs.cases import places
from curation.match import EQUAL, answer_text
from curation.mutation import Answered, Score, mutation_scores
from curation.rules import VOLATILE
from curation.rules import places as places_in
from curation.store import Store
from environments.catalogue import find
from schemas.statements import Verification
from schemas.trajectory import Trajectory, answers_of

_CHUNK = 400


class MutationResult(msgspec.Struct):
    """Of the confirmed answers of an environment's attempts, altered on purpose, how many would still be called equal.

    One score for each comparator or rule and alteration, over all worlds that the environment's name stands for.
    """

    answers: int
    scores: list[Score]


def score_mutations(store: Store, environment: str) -> MutationResult:
    """Alter every answer that a replay in this environment confirmed, and let each comparator and rule judge it.

    Nothing is executed. Raises UnknownEnvironmentError, UsageError.
    """
    answers = 0
    scores: list[Score] = []
    for name, identities in places(store, environment).items():
        spec = find(name).spec
        confirmed = list(read_answers(store, identities))
        answers += len(confirmed)
        scores.extend(mutation_scores(confirmed, spec))
    return MutationResult(answers, list(pool(scores)))


def pool(scores: Sequence[Score]) -> Iterator[Score]:
    """Scores of one comparator and alteration added up."""
    counts: dict[tuple[str, str], list[Score]] = defaultdict(list)
    for score in scores:
        counts[score.comparator, score.alteration].append(score)
    for _, same in sorted(counts.items()):
        altered, equal = (sum(part) for part in zip(*((s.altered, s.called_equal) for s in same), strict=True))
        yield msgspec.structs.replace(same[0], altered=altered, called_equal=equal)


def read_answers(store: Store, identities: Sequence[str]) -> Iterator[Answered]:
    """The answers of these attempts that execution confirmed, as the log holds them."""
    for start in range(0, len(identities), _CHUNK):
        chunk = list(identities[start : start + _CHUNK])
        checks: dict[str, list[Verification]] = defaultdict(list)
        rows = store.sql(
            """SELECT trajectory, record FROM effective_verifications
               WHERE layer = 'execution' AND trajectory IN (SELECT unnest(?)) AND match IN (SELECT unnest(?))
               ORDER BY trajectory, message, call""",
            [chunk, sorted(EQUAL)],
        )
        for identity, record in zip(rows["trajectory"].to_pylist(), rows["record"].to_pylist(), strict=True):
            checks[identity].append(msgspec.json.decode(record, type=Verification))
        for identity, trajectory in store.trajectories(chunk):
            yield from _answered(trajectory, checks[identity])


def _answered(trajectory: Trajectory, checks: Sequence[Verification]) -> Iterator[Answered]:
    answers = answers_of(trajectory)
    tools = {call.uid: call.name for message in trajectory.messages for call in message.tool_calls}
    for check in checks:
        if check.call is None or check.execution is None or check.call not in answers:
            continue
        text = answer_text(trajectory.messages[answers[check.call]])
        if text is not None:
            failed = check.execution.status in ERRORS
            yield Answered(tools[check.call], text, failed, _moves(check, text))


def _moves(check: Verification, text: str) -> dict[str, frozenset[int]]:
    """The places that volatile rules forgave, found again by where the evidence says that they start."""
    rules = () if check.execution is None else check.execution.rules
    found = {}
    for rule in rules:
        if rule in VOLATILE:
            starts = {item.start for item in check.evidence if (item.note or "").startswith(f"{rule}:")}
            spans = enumerate(places_in(rule, text))
            found[rule] = frozenset(number for number, place in spans if place.start in starts)
    return found
