"""What the result of a Harbor trial says of its outcome and of how it stopped: two things."""

import msgspec

from curation.importers.face import Fact
from schemas.statements import Result, Stop

STOP_RULE = "harbor.stop@1"
OUTCOME_RULE = "harbor.outcome@1"

# The agent's own endings: the harness grades what it left behind.
_GRADED: dict[str, Stop] = {
    "AgentTimeoutError": "timeout",
    "NonZeroAgentExitCodeError": "unknown",
    "ContextWindowExceededError": "context_length",
    "ContextLengthExceededError": "context_length",
    "OutputTokenExceededError": "output_length",
    "OutputLengthExceededError": "output_length",
    "AgentSafetyRefusalError": "completed",
    "ContentPolicyViolationError": "completed",
}
_AFTER_THE_AGENT = frozenset(
    (
        "AddTestsDirError",
        "DownloadVerifierDirError",
        "RewardFileEmptyError",
        "RewardFileNotFoundError",
        "VerifierOutputParseError",
        "VerifierTimeoutError",
    )
)
_PROVIDER = frozenset(
    (
        "AgentAuthenticationError",
        "ApiConnectionClosedError",
        "ApiConnectionError",
        "ApiError",
        "ApiInternalServerError",
        "ApiOverloadedError",
        "ApiProviderResourceNotFoundError",
        "ApiRateLimitError",
        "ApiResponseStalledError",
        "ApiUsageLimitError",
        "APIConnectionError",
        "APIError",
        "APIResponseValidationError",
        "AuthenticationError",
        "BadRequestError",
        "BudgetExceededError",
        "InternalServerError",
        "ModelNotFoundError",
        "NetworkConnectionError",
        "NotFoundError",
        "PermissionDeniedError",
        "RateLimitError",
        "ServiceUnavailableError",
        "Timeout",
        "UnknownApiError",
        "UnprocessableEntityError",
        "UnsupportedModelParametersError",
        "UnsupportedParamsError",
    )
)


class Verdict(msgspec.Struct):
    """What the verifier wrote: a number for each of its rewards."""

    rewards: dict[str, float | int | None] | None = None


class Raised(msgspec.Struct):
    """What ended a trial or one of its steps early."""

    exception_type: str
    exception_message: str = ""

    @property
    def text(self) -> str:
        """Type and message, as a stop is logged."""
        return f"{self.exception_type}: {self.exception_message}" if self.exception_message else self.exception_type


def outcome_facts(verdict: Verdict | None, raised: Raised | None, valid: bool | None) -> tuple[Fact, ...]:
    """The outcome, and each reward where there are several; ``valid``: what the harness itself says of the rewards."""
    given = (verdict.rewards if verdict else None) or {}
    rewards = {name: value for name, value in given.items() if value is not None}
    several = tuple(Fact(f"reward.{name}", value) for name, value in rewards.items()) if len(rewards) > 1 else ()
    if not rewards or valid is False or (valid is None and raised is not None and raised.exception_type not in _GRADED):
        return (Fact("outcome", "unknown", "rule", OUTCOME_RULE), *several)
    score = rewards.get("reward", next(iter(rewards.values())) if len(rewards) == 1 else None)
    return (Fact("outcome", _result(tuple(rewards.values()) if score is None else (score,)), score=score), *several)


def stop_of(raised: Raised | None) -> Stop:
    """Why the agent stopped; what failed after it says nothing of that."""
    if raised is None or raised.exception_type in _AFTER_THE_AGENT:
        return "completed"
    if raised.exception_type in _PROVIDER:
        return "provider_error"
    if raised.exception_type == "CancelledError":
        return "cancelled"
    return _GRADED.get(raised.exception_type, "unknown")


def _result(values: tuple[float | int, ...]) -> Result:
    """Passed where every reward is 1, failed where every one is 0, partial between; another scale is not known."""
    if not all(0 <= value <= 1 for value in values):
        return "unknown"
    if all(value == 1 for value in values):
        return "passed"
    return "failed" if all(value == 0 for value in values) else "partial"
