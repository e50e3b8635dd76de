"""The page as text, and the command that writes it; test_in_chromium.py opens it."""

import base64
import hashlib
import json
import re
import sys
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from factories import FEATURES, payments

from fewlier import UserError
from fewlier.report import page
from fewlier.report.figures import draw, locate_x_axis, make_displays
from fewlier.report.page import render, write_report

GOLDEN = Path(__file__).parents[1] / "golden"


class Attributes(HTMLParser):
    """Gathers the values of every attribute, by its name."""

    def __init__(self):
        super().__init__()
        self.found = defaultdict(set)

    def handle_starttag(self, tag, attrs):  # noqa: ARG002 - as the parser calls it
        for name, value in attrs:
            self.found[name].add(value)


def element(html, name):
    return re.search(rf"<{name}>(.*?)</{name}>", html, re.DOTALL)[1]


def test_the_same_facts_give_the_same_page(facts, html):
    assert render(facts) == html


@pytest.mark.parametrize("name", ["html", "hostile_html"])
def test_a_page_is_one_small_file_that_names_no_other(name, request):
    html = request.getfixturevalue(name)
    assert len(html.encode()) < 3e6
    reader = Attributes()
    reader.feed(html)
    assert not {"src", "srcset", "poster", "action", "style"} & set(reader.found)
    assert not [name for name in reader.found if name.startswith("on")]
    assert {value[0] for value in reader.found["href"]} == {"#"}
    css = element(html, "style")
    assert "url(" not in css
    assert "@import" not in css


def test_the_policy_allows_the_page_its_own_style_and_script_alone(html):
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; ")
    for name in ("style", "script"):
        digest = hashlib.sha256(element(html, name).encode()).digest()
        assert f"{name}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy


def test_a_page_says_when_it_was_made(facts):
    made = datetime(2026, 3, 7, 9, 5, tzinfo=UTC)
    html = render(replace(facts, made=made))
    assert '<time datetime="2026-03-07T09:05:00+00:00">7 March 2026, 09:05 UTC</time>' in html


def test_a_share_is_not_parted_from_its_category(html):
    assert re.search(r"Bern\xa0\(\d+\xa0%\)", html)
    assert not re.search(r"\(\d+ %\)", html)


def test_a_page_says_what_to_expect_of_the_model(facts, html):
    model, decision = section(html, "The model"), facts.summary.decision
    assert f"{facts.summary.validation.auc:.3f} (95 %: " in model
    assert "% of new rows like the training rows" in model
    assert "unlabelled: anomalies hidden there" in decision.caveat
    assert html.count(decision.caveat) >= 2  # beside the slider, too
    costly = facts.calibration.at_costs(20, 1, 0.1)
    assert costly.decision.costs is not None
    told = replace(facts.summary, decision=costly.decision)
    assert "flagging all costs 900, flagging none 2,000" in dict(told.decision.facts)["expected"]


def test_ids_are_used_once(facts):
    ids = re.findall(r'<[^>]* id="([^"]*)"', render(facts))
    assert len(ids) == len(set(ids)) > 20


def test_no_stand_in_colour_is_left(html):
    assert not re.search(r'"#0000[ef]\d"', html)


def test_data_cannot_end_their_element(hostile_facts, hostile_html):
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', hostile_html)[1]
    assert "<" not in data
    assert json.loads(data)["rows"] == len(hostile_facts.scores)
    assert page._json({"</script>": "<!--"}) == '{"\\u003c/script>":"\\u003c!--"}'


def test_a_page_without_labels_mentions_none(detector, facts_of):
    html = render(facts_of(detector, payments(60, seed=2)))
    assert "Scores against labels" not in html
    assert "recall" not in element(html, "main")
    assert "all rows" in html


@pytest.mark.parametrize("label", [0, 1])
def test_labels_of_one_kind_give_no_curves_and_say_so(label, detector, facts_of):
    html = render(facts_of(detector, payments(60, seed=2).assign(fraud=label), "fraud"))
    assert "Curves need rows of both labels" in html
    assert ("Are the p-values right?" in html) is (label == 0)


def test_a_table_of_one_row_has_a_page(detector, facts_of):
    html = render(facts_of(detector, payments(60, seed=2).head(1)))
    assert "The 1 highest scores." in html


def test_the_threshold_lies_on_the_axis_of_the_figure_where_the_page_thinks(facts):
    display = make_displays(facts)["scores"]
    svg = draw(display, "scores")
    axis, threshold = locate_x_axis(display), facts.calibration.threshold
    line = re.search(r'id="scores-threshold">\s*<path d="M ([\d.]+) ', svg)[1]
    share = (threshold - axis["low"]) / (axis["high"] - axis["low"])
    expected = axis["left"] + share * (axis["right"] - axis["left"])
    assert float(line) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_without_its_packages_the_error_says_what_to_install(missing, facts, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError, match=rf"{missing} is not installed.*'fewlier\[report\]'"):
        render(facts)


def test_a_page_that_cannot_be_written_is_an_error(facts, tmp_path):
    with pytest.raises(UserError, match=r"output must be a file that can be written; .*No such"):
        write_report(facts, tmp_path / "absent" / "report.html")


def section(html, title):
    return html.split(f">{title}<")[1].split("</section>")[0]


@pytest.mark.slow
def test_drift_names_what_has_changed(detector, facts_of):
    rows = payments(300, seed=2)
    title = "Do the rows look like the training data?"
    calm = section(render(facts_of(detector, rows)), title)
    assert "Yes, as far as they show." in calm
    moved = facts_of(detector, rows.assign(amount=rows["amount"] + 30))
    told = section(render(moved), title)
    assert "<strong>No.</strong>" in told
    assert told.index("values of <bdi>amount</bdi>") < told.index("0.001")
    new = facts_of(detector, rows.assign(city="<Paris>"))
    assert "300 in <bdi>city</bdi>" in re.sub(r"\s+", " ", section(render(new), title))


def test_long_numbers_and_texts_are_cut():
    assert page._short("y" * 300) == "y" * (page.MAX_TEXT - 1) + "…"
    assert page._short(np.float64(1) / 3) == "0.33333"


def test_every_column_matters_in_words_too(html):
    for name in FEATURES:
        assert f'<bdi class="column">{name}</bdi>' in html
