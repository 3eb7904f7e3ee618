import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.charts import BARS, draw
from reports.markdown import markdown
from reports.page import LISTED, page
from reports.selection_bias import selection_bias
from reports.table import COLUMNS, row_names
from tests.reports.attempts import Attempts, Try, seed

HOSTILE = "</script><b onclick=x>"
TERMINAL = "\x1b[2K\rALL VERIFIED\u202e"


def elements(svg: str) -> list[ElementTree.Element]:
    """All elements of a chart, which has to be well-formed XML."""
    return list(ElementTree.fromstring(svg).iter())  # noqa: S314 - our own renderer's output


class Reader(HTMLParser):
    """What a browser would see: tags, attributes and text."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text: list[str] = []
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_a_page_loads_nothing_and_runs_nothing() -> None:
    document = page(selection_bias(Attempts(seed()), by=["difficulty"]))
    seen = Reader(document)
    assert not seen.tags & {"script", "link", "img", "iframe", "object", "image", "use", "a", "foreignobject"}
    assert not {name for name in seen.attributes if name.startswith("on") or name in ("src", "href", "xlink:href")}
    assert not re.search(r"url\(|@import|javascript:", document)
    assert set(re.findall(r"\w+://[^\"]*", document)) == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_markup_in_any_value_is_inert_in_page_chart_and_markdown() -> None:
    tries = [
        Try(HOSTILE, "success", strata={HOSTILE: HOSTILE}, model=HOSTILE),
        Try(f"{HOSTILE} 2", strata={HOSTILE: "`|[x](y)"}, model="{{ 7 * 7 }}"),
    ]
    report = selection_bias(Attempts(tries), keep=f"model <> '{HOSTILE}</code>'", by=[HOSTILE, "model", "task"])
    seen = Reader(page(report))
    assert "script" not in seen.tags
    assert "onclick" not in seen.attributes
    assert sum(text.strip() == HOSTILE for text in seen.text) >= 6
    assert "{{ 7 * 7 }}" in "".join(seen.text)
    for table in report.strata:
        charts = draw(table, report.overall.retention)
        for svg in (charts.shares, charts.retention):
            names = {element.tag.split("}")[1] for element in elements(svg)}
            assert names <= {"svg", "g", "rect", "path", "line", "text"}
    written = markdown(report)
    assert "<" not in re.sub(r"&lt;", "", written)
    assert not re.search(r"(?<!\\)`|\]\(", written.replace("\\]", ""))
    assert (
        len(
            {
                line.count(" | ")
                for line in written.splitlines()
                if line.startswith("| &lt;/script&gt;&lt;b onclick=x&gt; |")
            }
        )
        == 1
    )


def test_terminal_controls_are_in_no_human_view_but_stay_in_the_record() -> None:
    tries = [Try(TERMINAL, strata={TERMINAL: TERMINAL}), Try("b", "success", strata={TERMINAL: "plain"})]
    report = selection_bias(Attempts(tries), keep=f"outcome = 'success' OR model = '{TERMINAL}'", by=[TERMINAL, "task"])
    for view in (page(report), markdown(report)):
        assert "ALL VERIFIED" in view
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]|\\[2K", view)
    assert msgspec.json.decode(msgspec.json.encode(report))["strata"][0]["by"] == TERMINAL


@settings(deadline=None, max_examples=25)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=4, unique=True))
def test_any_text_can_be_a_stratum(values: list[str]) -> None:
    report = selection_bias(Attempts([Try("t", strata={"s": value}) for value in values]), by=["s"])
    assert len(elements(draw(report.strata[0], None).shares)) > len(values)
    names = row_names(report.strata[0].rows)
    assert len(set(names)) == len(values)
    assert all(names)


def test_every_view_shows_the_same_numbers() -> None:
    tries = [*seed(), *(Try("flaky", "unknown", fault=True, strata={"difficulty": "hard"}) for _ in range(3))]
    report = selection_bias(Attempts(tries), by=["difficulty"])
    shown, written = " ".join("".join(Reader(page(report)).text).split()), markdown(report)
    for row in (report.overall, *report.strata[0].rows):
        for column in COLUMNS:
            assert column.cell(row) in shown
            assert column.cell(row) in written
    for note in report.notes:
        assert note.text in shown
    for part in ("90.0 % [78.6, 95.7]", f"{report.strata[0].total_variation:.3f}", "10 of 50: 20.0 % [11.2, 33.0]"):
        assert part in shown
        assert part in written


@pytest.mark.parametrize(
    "about", ["not that a model learns", "missing not at random", "The unit is the attempt", "default"]
)
def test_a_report_says_what_it_is_and_what_it_does_not_show(about: str) -> None:
    report = selection_bias(Attempts(seed()), by=["difficulty"])
    assert about in markdown(report)
    assert about in " ".join("".join(Reader(page(report)).text).split())


def test_with_many_strata_charts_show_the_largest_and_the_table_is_folded() -> None:
    tries = [
        Try(str(number), "success", attempt=again) for number in range(500) for again in range(1 + (number < BARS))
    ]
    report = selection_bias(Attempts(tries), by=["task"])
    (table,) = report.strata
    charts = draw(table, report.overall.retention)
    assert (len(table.rows), charts.shown, charts.hidden) == (500, BARS, 480)
    labels = {element.text for element in elements(charts.shares) if element.text}
    assert {str(number) for number in range(BARS)} < labels
    assert str(BARS) not in labels
    document = page(report)
    assert "480 more are in the table" in document
    assert "<summary>Table of 500 strata</summary>" in document


def test_a_page_stays_bounded_and_says_what_it_leaves_out() -> None:
    report = selection_bias(Attempts([Try(str(number)) for number in range(LISTED + 5)]), by=["task"])
    document = page(report)
    assert "5 more strata are not listed here" in document
    assert f"{LISTED + 5 - 100:,} more tasks not listed" in document


def test_a_report_on_nothing_can_be_looked_at() -> None:
    report = selection_bias(Attempts(), by=["model"])
    assert "0 of 0 attempts kept" in page(report)
    assert "undefined: there are no attempts" in markdown(report)
