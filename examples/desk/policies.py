"""Scripted policies: a careful one, and one for every mistake that agents at such a desk really make.

A policy is a generator. It yields what the agent does next, gets the answers of its calls, and knows nothing of the
world but those. After a final message it is not asked again.
"""

from collections.abc import Callable, Generator
from random import Random
from typing import Any, NamedTuple

import msgspec

from examples.desk.jobs import Job, Step

Arguments = dict[str, Any]
Answer = dict[str, Any]
Done = list[tuple[Step, Answer]]  # what was asked for, and what came back


class Call(NamedTuple):
    """The agent calls a tool; the arguments are text, as a model writes them."""

    tool: str
    arguments: str
    text: str = ""


class Say(NamedTuple):
    """The agent writes a message; a final one ends the run. One that is not was meant to be a call."""

    text: str
    final: bool = True


class Break(NamedTuple):
    """The model's provider fails, and with it the run."""

    message: str
    kind: str


Turn = Call | Say | Break
Policy = Generator[Turn, Answer, None]


def careful(job: Job, rng: Random) -> Policy:
    """Every call as asked, and an answer that says what came back."""
    done: Done = []
    for step in job.steps:
        yield from _do(job, rng, step, done)
    yield Say(reply(job, done))


def wrong_sku(job: Job, rng: Random) -> Policy:
    """A lookalike in one call; what the world answers is taken for an answer about the right one."""
    yield from _wrong_sku(job, rng, notices=False)


def wrong_sku_noticed(job: Job, rng: Random) -> Policy:
    """The same, but the agent sees it in the answer, takes back what it did, and goes on with the right one."""
    yield from _wrong_sku(job, rng, notices=True)


def wrong_quantity(job: Job, rng: Random) -> Policy:
    """A digit too many in the quantity; where stock runs out, a smaller one is not tried."""
    done: Done = []
    for step in job.steps:
        instead = step.arguments
        if step.tool == "book":
            instead = instead | {"qty": instead["qty"] * 10 + rng.randint(0, 9)}
        yield from _do(job, rng, step, done, instead)
    yield Say(reply(job, done))


def skipped_step(job: Job, rng: Random) -> Policy:
    """One part of the request is forgotten."""
    done: Done = []
    skipped = rng.choice(job.steps)
    for step in job.steps:
        if step is not skipped:
            yield from _do(job, rng, step, done)
    yield Say(reply(job, done) or _pick(job, "All done.", "好了。"))


def misread(job: Job, rng: Random) -> Policy:
    """The right calls, and another number in the answer to the customer."""
    done: Done = []
    for step in job.steps:
        yield from _do(job, rng, step, done)
    yield Say(reply(job, [(step, answer | {"stock": answer.get("stock", 0) + 10}) for step, answer in done]))


def false_claim(job: Job, rng: Random) -> Policy:
    """A look-up, and the claim to have booked."""
    step = job.steps[0]
    yield Call("get_stock", _text({"sku": step.sku}))
    yield Say(_pick(job, f"Done! I have booked {step.sku} for you.", f"已为您预订 {step.sku}。"))


def bad_json(job: Job, rng: Random) -> Policy:
    """Arguments that are cut off, again and again; where nothing answers them, the run ends there."""
    step = job.steps[0]
    for _ in range(2):
        yield Call(step.tool, _text(step.arguments)[:-1])
    yield Say(_pick(job, "Sorry, the system does not accept my request.", "抱歉，系统出错了。"))


def bad_json_noticed(job: Job, rng: Random) -> Policy:
    """Arguments that are cut off once, then as they should be."""
    yield Call(job.steps[0].tool, _text(job.steps[0].arguments)[:-1])
    yield from careful(job, rng)


def call_as_text(job: Job, rng: Random) -> Policy:
    """Calls written into the message, three times."""
    step = job.steps[0]
    for _ in range(3):
        yield Say(f"{step.tool}({', '.join(map(str, step.arguments.values()))})", final=False)


def wrong_tool(job: Job, rng: Random) -> Policy:
    """A tool that this desk does not have."""
    tool = "book" if job.world == "inventory" else "reserve"
    yield Call(tool, _text({"sku": job.steps[0].sku, "qty": 1}))
    yield Say(_pick(job, "I cannot do that here.", "这里办不了。"))


def wrong_tool_noticed(job: Job, rng: Random) -> Policy:
    """The same once, then the right one."""
    tool = "check_stock" if job.world == "inventory" else "reserve"
    yield Call(tool, _text(job.steps[0].arguments))
    yield from careful(job, rng)


def going_round(job: Job, rng: Random) -> Policy:
    """The same look-up until the steps are used up."""
    while True:
        yield Call("get_stock", _text({"sku": job.steps[0].sku}), "Let me check once more.")


def giving_up(job: Job, rng: Random) -> Policy:
    """No call at all."""
    yield Say(_pick(job, "I am not sure which items you mean, please call our shop.", "抱歉，请联系门店。"))


def provider_failure(job: Job, rng: Random) -> Policy:
    """The provider fails after the first look-up."""
    yield Call("get_stock", _text({"sku": job.steps[0].sku}))
    yield Break("Rate limit reached for requests", "rate_limit_error")


def asks_back(job: Job, rng: Random) -> Policy:
    """The request names nothing, so the agent asks."""
    yield Say(_pick(job, "Which item do you mean? Please give me its number.", "请问是哪个型号？"))


def guesses(job: Job, rng: Random) -> Policy:
    """The request names nothing, and the agent takes any number; now and then it is lucky."""
    step = job.steps[0]
    sku = step.sku if rng.random() < 0.3 else job.lookalikes[step.sku]
    done: Done = []
    yield from _do(job, rng, step, done, step.arguments | {"sku": sku})
    yield Say(reply(job, done))


def reply(job: Job, done: Done) -> str:
    """What the agent tells the customer: one line for each step that has something to tell."""
    return "\n".join(filter(None, (_line(job, step, answer) for step, answer in done)))


def choose(job: Job, rng: Random) -> Callable[[Job, Random], Policy]:
    """A policy for one attempt: nine easy attempts in ten go well, and one to four hard ones in ten."""
    if not job.named:
        return rng.choice((asks_back, guesses, guesses))
    ability = 0.9 if job.difficulty == "easy" else Random(job.request).uniform(0.1, 0.4)
    if rng.random() < ability:
        return rng.choices((careful, *_NOTICED), (16, 2, 1, 1))[0]
    policies = _FAILING[job.world]
    return rng.choices(list(policies), list(policies.values()))[0]


def _wrong_sku(job: Job, rng: Random, *, notices: bool) -> Policy:
    slip = rng.choice([step for step in job.steps if step.tool != "cancel"])
    done: Done = []
    for step in job.steps:
        if step is not slip:
            yield from _do(job, rng, step, done)
            continue
        other = job.lookalikes[step.sku]
        yield from _do(job, rng, step, done, step.arguments | {"sku": other})
        _, answer = done[-1]
        if notices:
            done.pop()
            if answer.get("status") == "booked":
                yield Call("cancel", _text({"sku": other}), "That was the wrong one.")
            yield from _do(job, rng, step, done)
        elif "error" in answer:
            yield Say(_pick(job, f"Sorry, {step.sku} does not exist.", f"抱歉，没有 {step.sku} 这个型号。"))
    yield Say(reply(job, done))


def _do(job: Job, rng: Random, step: Step, done: Done, instead: Arguments | None = None) -> Policy:
    """One step, perhaps with other arguments; after a time-out it is tried again, or the run ends."""
    arguments = step.arguments if instead is None else instead
    if step.all_left and done and instead is None:
        arguments = arguments | {"qty": done[-1][1].get("stock", 0)}
    answer = yield Call(step.tool, _text(arguments))
    if answer == {"error": "timeout"}:
        if rng.random() < 0.4:
            yield Say(_pick(job, "The stock system does not answer, please try later.", "系统超时，请稍后再试。"))
        answer = yield Call(step.tool, _text(arguments))
    done.append((step, answer))


def _line(job: Job, step: Step, answer: Answer) -> str:
    """One line about a step. It names the SKU that was asked for, whatever was looked up."""
    match answer:
        case {"error": problem}:
            return _pick(job, f"{step.sku}: that did not work ({problem})", f"{step.sku}: 没有办成 ({problem})")
        case {"status": "booked", "qty": qty}:
            return _pick(job, f"Booked {qty} of {step.sku}.", f"已为您预订 {qty} 件 {step.sku}。")
        case {"status": "cancelled"}:
            return f"Cancelled the booking of {step.sku}."
        case _ if job.world == "booking":
            return ""
        case _:
            stock, city = answer["stock"], answer["city"]
            return _pick(job, f"{step.sku}: {stock} in {city}", f"{step.sku}: {stock} 件 ({city})")


def _pick(job: Job, english: str, chinese: str) -> str:
    return chinese if job.language == "zh" else english


def _text(arguments: Arguments) -> str:
    return msgspec.json.encode(arguments).decode()


_NOTICED = (wrong_sku_noticed, bad_json_noticed, wrong_tool_noticed)
_FAILING: dict[str, dict[Callable[[Job, Random], Policy], int]] = {
    "inventory": {
        wrong_sku: 10,
        misread: 4,
        false_claim: 4,
        call_as_text: 3,
        bad_json: 2,
        wrong_tool: 2,
        going_round: 2,
        giving_up: 3,
        skipped_step: 2,
        provider_failure: 2,
    },
    "booking": {
        wrong_sku: 12,
        wrong_quantity: 5,
        false_claim: 5,
        skipped_step: 3,
        call_as_text: 2,
        bad_json: 2,
        wrong_tool: 2,
        giving_up: 2,
        provider_failure: 2,
    },
}
