"""Two dialects of AgentDojo's run files, told as the original tells them: DRIFT's and luna's.

DRIFT, a defence, calls its messages ``conversations`` and writes each call into the text as well. luna names task and
condition, the seed, the names of its tools, and a verdict of several parts. Both have a loop of their own, so the
original harness's limit on steps is not theirs.
"""

from collections.abc import Mapping
from typing import Any, Literal

Dialect = Literal["", "drift", "luna"]

_SHARED = frozenset(("suite_name", "pipeline_name"))
_LUNA = _SHARED | {"task_id", "condition"}
_ORIGINAL = _SHARED | {"user_task_id"}


def dialect_of(record: Mapping[str, Any]) -> Dialect | None:
    """Which dialect a run is told in, "" for the original's; None for what is no run, as far as its keys tell."""
    if record.keys() >= _LUNA:
        return "luna"
    if record.keys() >= _ORIGINAL:
        return "drift" if "conversations" in record and "messages" not in record else ""
    return None


def in_original(record: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    """The run with the keys of the original; hidden parts of a verdict are left behind."""
    if dialect == "drift":
        return {**record, "messages": record["conversations"], "pipeline_name": f"{record['pipeline_name']}/drift"}
    if dialect == "luna":
        verdict = record.get("evaluation")
        said = verdict if isinstance(verdict, dict) else {}
        known = {name: said[name] for name in ("utility", "security") if isinstance(said.get(name), bool)}
        named = {"user_task_id": record["task_id"], "attack_type": record["condition"]}
        return {**record, **named, **known}
    return dict(record)
