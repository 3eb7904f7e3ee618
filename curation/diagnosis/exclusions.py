"""Whether a request names a thing without asking for it: "anything but A17", "like A17", "my last order was A17"."""

import re

_REACH = 500  # characters looked at on either side
_END = re.compile(r"[.!?。！？;；]|(?<![:：,，])\n")
_ANOTHER = re.compile(
    r"\b(?:not|never|no|except|besides|without|unlike|than|instead of|in place of|replac\w{0,5}|alternatives?|similar"
    r"|avoid|exclud\w{0,4}|next to|after|before|between|(?:anything|everything|all|nothing) but)\b|n['’]t\b"
    r"|(?<!would )(?<!['’]d )\blike\s$"
    r"|[不别勿]|非|除|类似|替代|代替|下一|另",
    re.IGNORECASE,
)
_PAST = re.compile(
    r"\b(?:last|previous(?:ly)?|former(?:ly)?|earlier|prior|past|old|already|originally|ago|yesterday|used to|was|were"
    r"|had|been|did|returned|sent back|gave back|exchang\w{0,5}|swap\w{0,5}|cancell?ed|refunded|ordered|bought"
    r"|purchased|received|owned|success\w{0,5}|predecess\w{0,5}|supersed\w{0,5}|replac\w{0,7}|alternatives?"
    r"|upgraded|upgrades? (?:of|for|to|from)|(?:I|we) (?:have|own)|(?:I|we)['’]ve"
    r"|broken?|wrong|skip|forget|ignore|drop|same"
    r"|another|different|newer|rather than|instead of|in place of|compatible|accessor(?:y|ies)|fits?)\b"
    r"|上[一个次回周月]|之前|以前|先前|此前|早先|曾|过去|原来|原先|原本|旧|刚才|昨天|已经|过的|[买订用退换]了|[买订用退换]过"
    r"|退[回货掉还款]|取消了|替代|替换|取代|代替|而不是|而非|换掉|换成|后续|后继|升级|配件|兼容|适用于",
    re.IGNORECASE,
)
_REFUSED = re.compile(r"[?？]\s?(?:no|not|never|不)(?![a-z])", re.IGNORECASE)


def excludes(text: str, start: int, end: int) -> bool:
    """Whether words in the sentence of a place may turn away from what it names, or tell of the past. In doubt, yes."""
    before = _END.split(text[max(start - _REACH, 0) : start])[-1]
    after = _END.split(text[end : end + _REACH])[0]
    if re.match(r"\s?(?:以外|之外|之后)", after) or _REFUSED.match(text, end):
        return True
    return any(cue.search(part) for cue in (_ANOTHER, _PAST) for part in (before, after))
