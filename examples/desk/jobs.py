"""The hundred jobs: 25 easy and 25 hard ones in each of two worlds, twelve of them held out for testing.

A job is a request, the calls that answer it, and the parameters that open its world. Hard jobs name several SKUs that
look alike, take several steps, and move larger numbers; a few name nothing at all.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Literal, NamedTuple

from examples.desk import wording
from schemas.canonical import raw
from schemas.trajectory import Task

CITIES = ("Hangzhou", "Shanghai", "Beijing", "Shenzhen", "Chengdu")
EACH = 25  # jobs of one difficulty in one world

World = Literal["inventory", "booking"]
Difficulty = Literal["easy", "hard"]


class Step(NamedTuple):
    """A call that belongs to a job. ``all_left``: its quantity is what the look-up before it answers."""

    tool: str
    arguments: dict[str, Any]
    all_left: bool = False

    @property
    def sku(self) -> str:
        """What the step is about."""
        return str(self.arguments["sku"])


class Job(NamedTuple):
    """One job. ``lookalikes`` maps each SKU to the one that a hasty reader takes for it."""

    world: World
    difficulty: Difficulty
    number: int
    request: str
    steps: tuple[Step, ...]
    parameters: dict[str, Any]
    lookalikes: dict[str, str]
    named: bool = True

    @property
    def name(self) -> str:
        """The task id, unique in its world."""
        return f"{self.difficulty}-{self.number:02}"

    @property
    def task(self) -> Task:
        """The job as environments know it."""
        return Task(f"{self.world}-desk", self.name, parameters=raw(self.parameters))

    @property
    def split(self) -> str:
        """Which part of the tasks it belongs to: every tenth job is for testing only."""
        return "test" if self.number % 10 == 5 else "train"

    @property
    def language(self) -> str:
        """The language of the request."""
        return "en" if self.request.isascii() else "zh"


class Shelf:
    """What one job has in stock: SKUs with their lookalikes, of which about half exist too."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.stock: dict[str, dict[str, Any]] = {}
        self.lookalikes: dict[str, str] = {}
        self.city, self.other = rng.sample(CITIES, 2)
        self._fill("Z90", self.other, 5)  # so that the other city is one that this world knows

    def add(self, low: int, high: int) -> str:
        """A new SKU such as A17 in the city, so many of it."""
        sku = self._new(lambda: f"{self._rng.choice('ABCDEFH')}{self._rng.randint(11, 79)}")
        decoy = self._new(lambda: sku[:-1] + self._rng.choice("0123456789"))
        self._fill(sku, self.city, self._rng.randint(low, high))
        self.lookalikes[sku] = decoy
        if self._rng.random() < 0.5:
            self._fill(decoy, self.city, self._rng.randint(low, high))
        return sku

    def add_stand(self) -> str:
        """A new SKU of the other kind, such as KX-204."""
        stand = self._new(lambda: f"KX-{self._rng.randint(101, 499)}")
        self._fill(stand, self.city, self._rng.randint(20, 60))
        self.lookalikes[stand] = f"KX-{self._rng.randint(501, 899)}"
        return stand

    def _new(self, make: Callable[[], str]) -> str:
        taken = {*self.stock, *self.lookalikes.values()}
        return next(sku for sku in iter(make, None) if sku not in taken)

    def _fill(self, sku: str, city: str, stock: int) -> None:
        self.stock[sku] = {"city": city, "stock": stock}


def jobs() -> Iterator[Job]:
    """All of them, always the same."""
    for number in range(1, EACH + 1):
        yield _easy_stock(number, Random(f"inventory easy {number}"))
        yield _hard_stock(number, Random(f"inventory hard {number}"))
        yield _easy_booking(number, Random(f"booking easy {number}"))
        yield _hard_booking(number, Random(f"booking hard {number}"))


def _easy_stock(number: int, rng: Random) -> Job:
    shelf = Shelf(rng)
    sku = shelf.add(1, 30)
    if number % 6 == 0:
        return _stock_job("easy", number, shelf, _fill(rng, wording.STOCK_ONE_ZH, sku=sku), [_look(sku)])
    request = _fill(rng, wording.STOCK_ONE, sku=sku, city=shelf.city)
    return _stock_job("easy", number, shelf, request, [_look(sku, shelf.city if number % 2 else None)])


def _hard_stock(number: int, rng: Random) -> Job:
    shelf = Shelf(rng)
    sku = shelf.add(20, 400)
    city, other = shelf.city, shelf.other
    named = number % 12 != 4
    if not named:
        request, steps = _fill(rng, wording.STOCK_UNNAMED, city=city), [_look(sku)]
    elif number % 4 == 0:
        skus = [sku, *(shelf.add(20, 400) for _ in range(rng.randint(2, 3)))]
        request, steps = _fill(rng, wording.STOCK_SEVERAL, skus=_list(skus)), [_look(each) for each in skus]
    elif number % 4 == 1:
        request = _fill(rng, wording.STOCK_TWO_CITIES, sku=sku, city=city, other=other)
        steps = [_look(sku, city), _look(sku, other)]
    elif number % 4 == 2:
        stand = shelf.add_stand()
        request = _fill(rng, wording.STOCK_TWO_KINDS, sku=sku, stand=stand)
        steps = [_look(sku), _look(stand)]
    else:
        request = _fill(rng, wording.STOCK_NOT_THAT, sku=sku, decoy=shelf.lookalikes[sku], city=city)
        steps = [_look(sku, city)]
    return _stock_job("hard", number, shelf, request, steps, named)


def _easy_booking(number: int, rng: Random) -> Job:
    shelf = Shelf(rng)
    sku, qty = shelf.add(6, 30), rng.randint(1, 5)
    said = wording.BOOK_ONE_ZH if number % 6 == 0 else wording.BOOK_ONE
    timeouts = [1] if number % 8 == 0 else []
    return _booking_job("easy", number, shelf, _fill(rng, said, sku=sku, qty=qty), [_book(sku, qty)], timeouts=timeouts)


def _hard_booking(number: int, rng: Random) -> Job:
    shelf = Shelf(rng)
    sku, qty = shelf.add(100, 400), rng.randint(21, 99)
    before: dict[str, int] = {}
    named = number % 12 != 3
    if not named:
        request, steps = _fill(rng, wording.BOOK_UNNAMED, qty=qty), [_book(sku, qty)]
    elif number % 5 == 0:
        wanted = {sku: qty, **{shelf.add(100, 400): rng.randint(21, 99) for _ in range(rng.randint(1, 2))}}
        request = _fill(
            rng, wording.BOOK_SEVERAL, orders=_list([f"{count} of {each}" for each, count in wanted.items()])
        )
        steps = [_book(each, count) for each, count in wanted.items()]
    elif number % 5 == 1:
        request = _fill(rng, wording.BOOK_CHECKED, sku=sku, qty=qty, city=shelf.city)
        steps = [_look(sku, shelf.city), _book(sku, qty)]
    elif number % 5 == 2:
        stand = shelf.add_stand()
        before = {stand: rng.randint(2, 9)}
        request = _fill(rng, wording.BOOK_INSTEAD, sku=sku, stand=stand, qty=qty)
        steps = [Step("cancel", {"sku": stand}), _book(sku, qty)]
    elif number % 5 == 3:
        request = _fill(rng, wording.BOOK_NOT_THAT, sku=sku, decoy=shelf.lookalikes[sku], qty=qty)
        steps = [_book(sku, qty)]
    else:
        request = _fill(rng, wording.BOOK_ALL, sku=sku, city=shelf.city)
        steps = [_look(sku), Step("book", {"sku": sku, "qty": shelf.stock[sku]["stock"]}, all_left=True)]
    timeouts = [len(steps)] if number % 8 == 0 else []
    return _booking_job("hard", number, shelf, request, steps, named, before, timeouts)


def _stock_job(
    difficulty: Difficulty, number: int, shelf: Shelf, request: str, steps: list[Step], named: bool = True
) -> Job:
    parameters = {"stock": shelf.stock}
    return Job("inventory", difficulty, number, request, tuple(steps), parameters, shelf.lookalikes, named)


def _booking_job(
    difficulty: Difficulty,
    number: int,
    shelf: Shelf,
    request: str,
    steps: list[Step],
    named: bool = True,
    before: dict[str, int] | None = None,
    timeouts: list[int] | None = None,
) -> Job:
    wanted = {step.sku: step.arguments["qty"] for step in steps if step.tool == "book"}
    parameters: dict[str, Any] = {"stock": shelf.stock, "wanted": {"bookings": wanted}}
    if before:
        parameters["bookings"] = before
    if timeouts:
        parameters["timeouts"] = timeouts
    return Job("booking", difficulty, number, request, tuple(steps), parameters, shelf.lookalikes, named)


def _look(sku: str, city: str | None = None) -> Step:
    return Step("get_stock", {"sku": sku} if city is None else {"sku": sku, "city": city})


def _book(sku: str, qty: int) -> Step:
    return Step("book", {"sku": sku, "qty": qty})


def _fill(rng: Random, texts: tuple[str, ...], **words: object) -> str:
    return rng.choice(texts).format(**words)


def _list(items: list[str]) -> str:
    return f"{', '.join(items[:-1])} and {items[-1]}"
