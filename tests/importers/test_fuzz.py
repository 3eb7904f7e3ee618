"""Logs changed at random, thousands of each format: each piece is read or refused, nothing is raised, nothing hangs."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from curation.importers import formats
from curation.importers.face import Item, Parsed
from curation.ingest import IngestOptions, find_sources, ingest
from curation.store.fsck import check
from tests.importers.corpus import columnar, read_corpus
from tests.importers.mutations import Log, lay_out, mutate
from tests.importers.reading import assert_whole
from tests.ingest.logs import attempts, new_store

INPUTS = 520  # of each format: more than ten thousand in all
BATCH = 52
IMPORTED = 60
CPU_SECONDS = 2.0

Corpus = dict[str, list[Log]]


@pytest.fixture(scope="module")
def corpus(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    found = read_corpus(logs)
    found["hf-rows"] += columnar(tmp_path_factory.mktemp("columnar"))
    return found


class HungError(BaseException):
    """Not an Exception: nothing that reads a log may catch it."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Ends the block where it takes more time of the processor, however busy the machine is."""

    def stop(_: int, __: FrameType | None) -> None:
        raise HungError(f"over {seconds} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def changed(corpus: Corpus, name: str, random: Random) -> tuple[Log, bytes]:
    log = random.choice(corpus[name])
    return log, mutate(log, [other for each in corpus.values() for other in each], random)


def write(folder: Path, log: Log, data: bytes) -> Path:
    """The log in a folder of its own, with what belongs beside it."""
    folder.mkdir(exist_ok=True)
    for name, beside in log.beside.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(beside)
    path = folder / ("result.json" if log.format == "harbor" else "log")
    path.write_bytes(data)
    return path


def read(name: str, path: Path, data: bytes) -> list[Item]:
    """What a format's importer makes of a file, within the time that an input has."""
    with within(CPU_SECONDS):
        for importer in formats.IMPORTERS.values():
            assert isinstance(importer.sniff(data[: formats.HEAD_BYTES]), str)
        return list(formats.find(name).read(path))


def assert_items(items: list[Item]) -> None:
    """Every item is an attempt that can be written and read again, or has a code, and each is told from the others."""
    assert len({(item.raw, item.place, item.offset, item.part) for item in items}) == len(items)
    for item in items:
        assert_whole(item)


def test_there_is_a_log_of_every_format_and_unchanged_each_holds_an_attempt(corpus: Corpus, tmp_path: Path) -> None:
    assert corpus.keys() == formats.IMPORTERS.keys()
    for name, logs in corpus.items():
        found = []
        for number, log in enumerate(logs):
            path = write(tmp_path / f"{name}-{number}", log, lay_out(log, Random(0)))
            found += [item for item in formats.find(name).read(path) if isinstance(item, Parsed)]
        assert found, name


def test_a_seed_makes_the_same_input_each_time(corpus: Corpus) -> None:
    for name in corpus:
        assert changed(corpus, name, Random(f"{name}/1")) == changed(corpus, name, Random(f"{name}/1"))
    assert len({changed(corpus, "openai-chat", Random(number))[1] for number in range(50)}) > 40


@pytest.mark.parametrize("start", range(0, INPUTS, BATCH))
@pytest.mark.parametrize("name", formats.IMPORTERS)
def test_whatever_a_log_holds_each_piece_is_read_or_refused(
    corpus: Corpus, tmp_path: Path, name: str, start: int
) -> None:
    for number in range(start, start + BATCH):
        seed = f"{name}/{number}"
        log, data = changed(corpus, name, Random(seed))
        try:
            path = write(tmp_path / "log", log, data)
            assert_items(read(name, path, data))
        except (Exception, HungError) as error:
            error.add_note(f"the input is changed(corpus, {name!r}, Random({seed!r})): {data[:200]!r}…")
            raise


@pytest.mark.parametrize("name", formats.IMPORTERS)
def test_whatever_a_log_of_another_format_holds_it_is_read_or_refused(
    corpus: Corpus, tmp_path: Path, name: str
) -> None:
    for other in sorted(corpus.keys() - {name}):
        for number in range(4):
            log, data = changed(corpus, other, Random(f"{other}/{name}/{number}"))
            assert_items(read(name, write(tmp_path / "log", log, data), data))


@pytest.mark.parametrize("name", formats.IMPORTERS)
def test_the_shortest_change_that_breaks_a_format_is_looked_for(corpus: Corpus, tmp_path: Path, name: str) -> None:
    @settings(
        max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
    )
    @given(random=st.randoms(use_true_random=False))
    @example(random=Random(0))
    def holds(random: Random) -> None:
        log, data = changed(corpus, name, random)
        assert_items(read(name, write(tmp_path / "log", log, data), data))

    holds()


@pytest.mark.parametrize("name", formats.IMPORTERS)
def test_what_is_imported_adds_up_and_is_known_the_next_time(corpus: Corpus, tmp_path: Path, name: str) -> None:
    """Accepted, duplicates and quarantined, each counted in the store, are what was read."""
    paths, items = [], 0
    for number in range(IMPORTED):
        log, data = changed(corpus, name, Random(f"import/{name}/{number}"))
        paths.append(write(tmp_path / str(number), log, data))
        items += len(read(name, paths[-1], data))
    store = new_store(tmp_path)
    sources = find_sources(paths, name)
    result = ingest(store, sources, IngestOptions())
    assert result.read == items
    counted = "SELECT count(*) AS n, count(code) AS refused, count(trajectory) AS held FROM sightings"
    (row,) = store.sql(counted).to_pylist()
    assert (row["n"], row["refused"], row["held"]) == (items, result.quarantined, result.accepted + result.duplicates)
    assert len(attempts(store)) <= result.accepted
    assert store.sql("SELECT id FROM trajectories").num_rows == result.accepted
    assert check(store.uri).problems == []
    again = ingest(store, sources, IngestOptions())
    assert (again.read, again.accepted, again.quarantined) == (result.read, 0, result.quarantined)
