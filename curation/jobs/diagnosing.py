"""Diagnosing a store's attempts."""

import msgspec

from curation.diagnosis.diagnose import diagnose
from curation.diagnosis.evidence import AUTHOR
from curation.jobs.cases import Known, attempt_ids, read_known
from curation.store import Batch, Store
from curation.store.supersede import superseding
from environments.catalogue import members
from schemas.statements import Finding, Statement

_CHUNK = 500


class DiagnoseResult(msgspec.Struct):
    """How many attempts were diagnosed, how many have a confirmed finding, and the findings by label."""

    attempts: int
    with_finding: int
    undetermined: int
    findings: int
    labels: dict[str, int]
    stops: dict[str, int]


def diagnose_attempts(store: Store, environment: str | None = None) -> DiagnoseResult:
    """Diagnose every live attempt by rule; a finding that a newer rule no longer makes is taken back.

    The declarations that count are those of the environment named, else of the one that replayed the attempt; so also
    where the name stands for several worlds.
    """
    if environment is not None and members(environment) != (environment,):
        environment = None
    identities = attempt_ids(store)
    with store.batch() as batch:
        pending: list[Statement] = []
        for known in read_known(store, identities, environment):
            pending.extend(_diagnosed(known))
            if len(pending) >= _CHUNK:
                _add(store, batch, pending)
        _add(store, batch, pending)
        store.write(batch)
    return _count(store, identities)


def _diagnosed(known: Known) -> list[Statement]:
    found = diagnose(known.case)
    statements: list[Statement] = [*found.findings, *found.verifications]
    before = [item for item in known.findings if item.author.name == AUTHOR.name and item.author.kind == AUTHOR.kind]
    if before and not found.findings:
        last = max(item.message for item in before)
        statements.append(Finding(known.case.trajectory_id, last, "undetermined", AUTHOR, "withdrawn"))
    return statements


def _add(store: Store, batch: Batch, pending: list[Statement]) -> None:
    for statement in superseding(store, pending):
        batch.add_statement(statement)
    pending.clear()


def _count(store: Store, identities: list[str]) -> DiagnoseResult:
    rows = store.sql(
        """SELECT label, count(*) AS n FROM effective_findings
           WHERE trajectory IN (SELECT unnest(?)) GROUP BY label ORDER BY n DESC, label""",
        [identities],
    ).to_pylist()
    attempts = store.sql(
        """SELECT count(DISTINCT trajectory) FILTER (label <> 'undetermined') AS confirmed,
               count(DISTINCT trajectory) FILTER (label = 'undetermined') AS undetermined
           FROM effective_findings WHERE trajectory IN (SELECT unnest(?))""",
        [identities],
    ).to_pylist()[0]
    stops = store.sql(
        """SELECT coalesce(stop, 'unknown') AS stop, count(*) AS n FROM attempts
           WHERE trajectory_id IN (SELECT trajectory FROM effective_findings) GROUP BY stop ORDER BY n DESC, stop"""
    ).to_pylist()
    return DiagnoseResult(
        attempts=len(identities),
        with_finding=attempts["confirmed"],
        undetermined=attempts["undetermined"],
        findings=sum(row["n"] for row in rows if row["label"] != "undetermined"),
        labels={row["label"]: row["n"] for row in rows},
        stops={row["stop"]: row["n"] for row in stops},
    )
