"""What notebooks show is text in HTML: nothing of the user's becomes markup."""

import re
from xml.etree import ElementTree

import pytest

from fewlier.process import markup

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</td></table></style><b>bold</b>",
    "&lt;not escaped yet&gt; & 'quoted'",
]


def parsed(html):
    """Read a fragment as XML, which refuses tags that are not closed."""
    return ElementTree.fromstring(html)


def cells(element):
    """Return the text of a table, line by line."""
    return [["".join(cell.itertext()) for cell in line] for line in element.iter("tr")]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_stays_text_wherever_it_is(text):
    bar = markup.Bar(text, 1)
    whole = markup.fragment(
        text,
        [
            markup.facts([(text, text)]),
            markup.folded(text, markup.table((text,), [(text,), (bar,)])),
        ],
    )
    root = parsed(whole)
    tags = {element.tag for element in root.iter()}
    assert not tags & {"script", "img", "b"}
    for facts, table in [root.iter("table")]:
        assert cells(facts) == [[text, text]]
        assert cells(table) == [[text]] * 3
    assert root.find("p").text == root.find("details/summary").text == text


def test_characters_that_cannot_be_seen_are_written_out():
    assert cells(parsed(markup.facts([("a\x1b[2J", "b\u202ec\nd")]))) == [
        [r"a\x1b[2J", r"b\u202ec\nd"]
    ]


def test_a_cell_may_be_a_book():
    ((cell,),) = cells(parsed(markup.table((), [("x" * 10_000,)])))[1:]
    assert cell == "x" * (markup.MAX_TEXT - 1) + "…"


def test_a_name_is_broken_between_its_words_and_a_very_long_one_inside():
    text = "claims_of_2023/the_insured = -1_000.5 " + "x" * 26
    (cell,) = parsed(markup.table((), [(text,)])).iter("td")
    parts = [cell.text, *(each.tail for each in cell)]
    assert parts == ["claims_", "of_2023/", "the_", "insured = -1_000.5 " + "x" * 24, "x", "x"]


def test_a_line_of_one_cell_is_as_wide_as_the_table():
    lines = [("row 7: score 3",), ("1", "2", "3")]
    found = [line.findall("td") for line in parsed(markup.table(("a", "b", "c"), lines)).iter("tr")]
    assert [cell.get("colspan") for cell in found[1]] == ["3"]
    assert len(found[2]) == 3


def test_a_long_table_says_how_many_lines_it_leaves_out():
    n = markup.MAX_LINES
    lines = [(str(line), "") for line in range(n + 1200)]
    _, *shown, last = cells(parsed(markup.table(("a", "b"), lines)))
    assert [line[0] for line in shown] == [line[0] for line in lines[:n]]
    assert last == ["and 1,200 more"]


@pytest.mark.parametrize(("share", "width"), [(0.5, 2.5), (1, 5), (7, 5), (0, 0), (-2, 0)])
def test_a_bar_is_as_long_as_its_share(share, width):
    cell = parsed(markup.table((), [(markup.Bar("1", share),)])).find("tbody/tr/td")
    (bar,) = cell.iterfind("span[@class='bar']")
    assert bar.get("style") == f"width: {width:.2f}em"


def test_nothing_is_loaded_and_no_colour_but_that_of_bars_is_set():
    whole = markup.fragment("t", [markup.table(("a",), [(markup.Bar("1", 1),)])])
    assert not any(word in whole for word in ("url(", "src=", "href=", "@import", "<script"))
    assert "color:" not in whole.replace("background-color:", "")
    assert re.findall(r"background: ([^;]*)", whole) == ["none !important", "#3a7fc4"]
