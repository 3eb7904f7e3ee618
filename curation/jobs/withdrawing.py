"""Checks that hold no more, because what they rested on is gone: superseded by word of a rule, which knows nothing."""

from collections.abc import Iterator, Sequence

from curation.store import Store
from schemas.statements import Verification
from schemas.trajectory import Author


def standing(store: Store, table: str, condition: str, identities: Sequence[str]) -> dict[str, list[str]]:
    """The ids of statements that nothing has superseded, by what they are about."""
    rows = store.sql(
        f"""SELECT trajectory, list(id ORDER BY id) AS ids FROM {table}
            WHERE {condition} AND trajectory IN (SELECT unnest(?))
              AND id NOT IN (SELECT unnest(supersedes) FROM {table}) GROUP BY trajectory ORDER BY trajectory""",
        [list(identities)],
    )
    return {row["trajectory"]: row["ids"] for row in rows.to_pylist()}


def withdraw_checks(store: Store, identities: Sequence[str], author: Author, why: str) -> Iterator[Verification]:
    """For each of these trajectories whose task an environment has checked: that this says nothing any more."""
    checks = standing(store, "verifications", "layer = 'task' AND author_kind = 'environment'", identities)
    for identity, ids in checks.items():
        yield Verification(identity, "task", "unknown", author, detail=why, supersedes=tuple(ids))
