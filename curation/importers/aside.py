"""What comes up beside the messages while one record is read."""

from dataclasses import dataclass, field

from schemas.objects import Object


@dataclass(slots=True)
class Aside:
    """Warnings (codes of schemas.reasons.WARNINGS), objects that the messages refer to, replaced surrogates."""

    warnings: list[str] = field(default_factory=list)
    objects: list[Object] = field(default_factory=list)
    replaced: int = 0

    def codes(self) -> tuple[str, ...]:
        """Each warning once, in the order in which they came up."""
        if self.replaced:
            self.warnings.append("surrogates_replaced")
        return tuple(dict.fromkeys(self.warnings))
