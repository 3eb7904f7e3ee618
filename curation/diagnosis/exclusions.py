"""Whether a request names a thing in order to have another one: "anything but A17", "like A17", "除了 A17"."""

import re

_BEFORE, _AFTER = 40, 6  # characters looked at
_END = re.compile(r"[.!?。！？;；\n]")
_ANOTHER = re.compile(
    r"\b(?:not|never|no|except|besides|without|unlike|than|instead of|in place of|replac\w{0,5}|alternatives?|similar"
    r"|avoid|exclud\w{0,4}|next to|after|before|between|(?:anything|everything|all|nothing) but)\b|n['’]t\b"
    r"|(?<!would )(?<!['’]d )\blike\s$"
    r"|不|非|除|类似|替代|代替|下一|另",
    re.IGNORECASE,
)


def excludes(text: str, start: int, end: int) -> bool:
    """Whether words close before or right after a place may turn away from what it names. In doubt, they do."""
    before = _END.split(text[max(start - _BEFORE, 0) : start])[-1]
    after = _END.split(text[end : end + _AFTER])[0]
    return bool(_ANOTHER.search(before) or re.match(r"\s?(?:以外|之外|之后|的替代)", after))
