"""The page in a real browser. In CI these tests are never skipped: `.ci/run` brings Chromium."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest
from contrasts import CONTRASTS
from labelling.conftest import HOSTILE, open_session, shop
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait
from words import BROKEN, NAMES, WIDTHS, wordy

from fewlier import Session
from fewlier.labelling.page.api import PageApi
from fewlier.labelling.page.app import serving
from fewlier_bench.studies.browser import PHONE, Screen, resize

pytestmark = pytest.mark.slow

N_ODD = 24  # the first rows of the table are anomalies


@pytest.fixture
def served(api):
    with serving(api) as address:
        yield address


@pytest.fixture
def page(chromium, served):
    """Open the page of a new session."""
    for log in ("browser", "performance"):
        chromium.get_log(log)
    return opened(chromium, served)


def opened(chromium, address, screen=Screen()):  # noqa: B008 - it is frozen
    resize(chromium, screen)
    chromium.get(address)
    until(chromium, lambda: heading(chromium).startswith("Row"))
    return chromium


def until(page, is_so):
    WebDriverWait(page, 20, poll_frequency=0.02).until(lambda _: is_so())


def text(page, css):
    return page.execute_script("return document.querySelector(arguments[0])?.textContent", css)


def heading(page):
    return text(page, "main h2") or ""


def row(page):
    return int(heading(page).removeprefix("Row ").replace(",", ""))


def press(page, *keys):
    for key in keys:
        ActionChains(page).send_keys(key).perform()


def answer(page, key):
    """Press a key, wait for the next row, and return the one that was answered."""
    before = row(page)
    press(page, key)
    until(page, lambda: heading(page) != f"Row {before:,}")
    return before


def given(session):
    return [(one.row, one.label) for one in session.history]


def alert(page):
    until(page, lambda: page.find_element("css selector", ".alert").is_displayed())
    return text(page, ".alert p")


@contextmanager
def command(table, answers):
    """Run `fewlier label`; yields the process and the address that it prints."""
    words = [sys.executable, "-m", "fewlier", "label", table, "-o", answers, "--no-browser"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stderr:
            if "http://127.0.0.1:" in line:
                break
        yield process, line.split()[-1]
        process.kill()


@pytest.mark.long
def test_of_sixty_answers_none_is_lost_when_the_server_is_killed_half_way(chromium, tmp_path):
    table, path, asked = tmp_path / "shop.csv", tmp_path / "labels.jsonl", []
    shop().to_csv(table, index=False)

    def go_on(n):
        for _ in range(n):
            key = " " if len(asked) % 10 == 9 else "a" if row(chromium) < N_ODD else "n"
            asked.append((answer(chromium, key), {"a": 1, "n": 0, " ": None}[key]))

    with command(table, path) as (server, address):
        opened(chromium, address)
        go_on(30)
        server.send_signal(signal.SIGKILL)
        server.wait()
        shown = row(chromium)
        press(chromium, "a")
        assert alert(chromium).startswith("The server does not answer. Start the command again")
        assert row(chromium) == shown  # the answer was not taken
    with command(table, path) as (server, address):
        opened(chromium, address)
        assert row(chromium) == shown
        assert "of 27 answers, 3 skipped" in text(chromium, ".found")
        go_on(30)
        chromium.refresh()
        until(chromium, lambda: "of 54 answers" in (text(chromium, ".found") or ""))
        server.terminate()
        assert server.wait() == 128 + signal.SIGTERM
        assert "stopped; 60 answers are kept." in server.stderr.read()
    with open_session(path) as session:
        assert given(session) == asked
        assert len(dict(asked)) == 60
        found = sum(label == 1 for _, label in asked)
    assert found == text_number(chromium, ".found strong") > 20


def text_number(page, css):
    return int(text(page, css).replace(",", ""))


def test_who_answers_what_is_no_longer_asked_is_told(page, api, session):
    state = api.reply("state", {})["state"]
    told = {"turn": state["turn"], "row": row(page), "answer": 1}
    elsewhere = api.reply("answer", told)["state"]["question"]["row"]
    press(page, "n")
    assert alert(page).startswith("Nothing changed")
    assert row(page) == elsewhere
    assert given(session) == [(told["row"], 1)]
    answer(page, "n")
    assert given(session) == [(told["row"], 1), (elsewhere, 0)]


def test_of_two_tabs_the_other_shows_what_is_so_when_it_is_looked_at(page, session, served):
    first = page.current_window_handle
    page.switch_to.new_window("tab")
    opened(page, served)
    done = [(answer(page, "a"), 1), (answer(page, "n"), 0)]
    now = row(page)
    page.close()
    page.switch_to.window(first)
    until(page, lambda: row(page) == now)
    assert given(session) == done
    done.append((answer(page, "a"), 1))
    assert given(session) == done


def test_every_key_does_what_the_help_says(page, session):
    first = answer(page, "a")
    second = answer(page, "n")
    third = answer(page, " ")
    assert given(session) == [(first, 1), (second, 0), (third, None)]
    press(page, Keys.BACKSPACE)
    until(page, lambda: row(page) == third)
    assert given(session) == [(first, 1), (second, 0)]
    press(page, "e", *"an 1?")  # letters in a field are letters
    assert given(session) == [(first, 1), (second, 0)]
    press(page, Keys.ENTER)
    answer(page, "n")
    assert session.history[-1].note == "an 1?"
    press(page, "1", *"heavy load")
    fourth = answer(page, Keys.ENTER)
    fifth = answer(page, "1")
    kinds = [(one.row, one.kind) for one in session.history if one.kind]
    assert kinds == [(fourth, "heavy load"), (fifth, "heavy load")]
    press(page, "?")
    assert page.find_element("css selector", "dialog").is_displayed()
    assert "undo the last answer" in text(page, "dialog")
    press(page, "a", Keys.ESCAPE)
    assert not page.find_element("css selector", "dialog").is_displayed()
    assert len(session.history) == 5
    press(page, "r")
    until(page, lambda: heading(page) == "The oddest rows")
    press(page, Keys.ESCAPE)
    until(page, lambda: heading(page).startswith("Row"))


def test_a_key_that_is_held_down_answers_once(page, session):
    shown = row(page)
    for is_repeat in (False, True, True, True):
        key = {"type": "keyDown", "key": "a", "text": "a", "autoRepeat": is_repeat}
        page.execute_cdp_cmd("Input.dispatchKeyEvent", key)
    until(page, lambda: row(page) != shown)
    assert given(session) == [(shown, 1)]


def test_space_after_a_click_skips_and_does_not_click_again(page, session):
    first = row(page)
    page.find_element("css selector", ".answer.is-anomaly").click()
    until(page, lambda: row(page) != first)
    second = answer(page, " ")
    assert given(session) == [(first, 1), (second, None)]


def test_an_answer_in_the_sidebar_is_changed(page, session):
    first, second = answer(page, "a"), answer(page, "a")
    page.find_elements("css selector", ".recent button")[1].send_keys(Keys.ENTER)
    until(page, lambda: row(page) == first)
    assert "Answered: anomaly." in text(page, ".title")
    press(page, "n")
    until(page, lambda: row(page) != first)
    assert given(session) == [(second, 1), (first, 0)]


def test_rows_of_the_ranking_are_answered_together(page, session):
    press(page, "r")
    until(page, lambda: heading(page) == "The oddest rows")
    boxes = page.find_elements("css selector", ".ranking tbody input")
    boxes[0].send_keys(Keys.SPACE)
    ActionChains(page).key_down(Keys.SHIFT).click(boxes[2]).key_up(Keys.SHIFT).perform()
    assert text(page, ".chosen") == "3 rows chosen"
    top = [one.row for one in session.ranking(3)]
    press(page, "a")
    until(page, lambda: text(page, ".said") == "3 rows: anomaly.")
    assert given(session) == [(one, 1) for one in top]
    press(page, Keys.BACKSPACE)
    until(page, lambda: "is open again" in text(page, ".said"))
    assert given(session) == [(one, 1) for one in top[:2]]


def test_labels_are_downloaded_as_a_file(page, session, tmp_path):
    allowed = {"behavior": "allow", "downloadPath": str(tmp_path)}
    page.execute_cdp_cmd("Browser.setDownloadBehavior", allowed)
    one = answer(page, "a")
    (button,) = [b for b in page.find_elements("css selector", ".tools button") if "Down" in b.text]
    button.click()
    path = tmp_path / "shop.labelled.csv"
    until(page, path.exists)
    labels = pd.read_csv(path)["label"].dropna()
    assert list(labels.items()) == [(one, 1)] == given(session)
    told = "Next: fewlier fit shop.labelled.csv --label label -o model.fewlier"
    assert text(page, ".said") == told


def test_everything_is_reached_by_tab_and_shows_the_focus(page):
    answer(page, "a")
    reached = set()
    focused = """
      const at = document.activeElement, style = getComputedStyle(at);
      if (at === document.body) return [null, "", 0];
      return [at.textContent.trim() || at.id.replace(/.*-/, ""), style.outlineStyle,
        parseFloat(style.outlineWidth)];
    """
    for _ in range(16):
        press(page, Keys.TAB)
        name, style, width = page.execute_script(focused)
        reached.add(name)
        if name is None:
            continue  # the browser's own controls come after the last of the page
        assert (style, width >= 2) == ("solid", True), name
    assert {"One row", "Ranking", "Download labels", "Save model", "?", "note"} <= reached
    assert {"Anomalya", "Normaln", "Skipspace", "Undo⌫", "1new kind"} <= reached


def test_parts_of_the_page_have_names_and_changes_are_told(page):
    answer(page, "a")
    landmarks = (
        "return ['header', 'nav', 'main', 'aside'].map(n => document.querySelectorAll(n).length)"
    )
    assert page.execute_script(landmarks) == [1, 1, 1, 1]
    assert page.find_element("css selector", ".said").get_attribute("aria-live") == "polite"
    assert text(page, ".said").endswith(": anomaly.")
    assert page.find_element("css selector", ".alert").get_attribute("role") == "alert"
    nameless = """
      return [...document.querySelectorAll("button, input, svg[role]")].filter(node =>
        !(node.textContent.trim() || node.getAttribute("aria-label") || node.labels?.length))
    """
    assert page.execute_script(nameless) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(theme, page):
    resize(page, Screen(theme=theme))
    for key in ("a", "n", " "):
        answer(page, key)
    contrasts = page.execute_script(CONTRASTS)
    press(page, "r")
    until(page, lambda: heading(page) == "The oddest rows")
    contrasts += page.execute_script(CONTRASTS)
    assert len(contrasts) > 200
    assert [(round(ratio, 2), words) for ratio, words in contrasts if ratio < 4.5] == []


@pytest.mark.parametrize("screen", [PHONE, Screen(320, 600), Screen()])
def test_no_page_is_wider_than_its_window(screen, page):
    answer(page, "a")
    resize(page, screen)
    for key in ("r", Keys.ESCAPE):
        scroll, inner = page.execute_script(
            "return [document.documentElement.scrollWidth, innerWidth]"
        )
        assert (inner, scroll <= inner) == (screen.width, True)
        before = heading(page)
        press(page, key)
        until(page, lambda was=before: heading(page) != was)


def test_texts_of_the_user_are_texts_and_nobody_else_is_asked(page, session, served):
    press(page, "1", *HOSTILE)
    answer(page, Keys.ENTER)
    shown = page.execute_script("return document.body.textContent")
    assert shown.count(HOSTILE) > 4  # a column, its cells, a kind
    assert session.history[0].kind == HOSTILE
    assert page.execute_script("return [window.hacked, document.images.length]") == [None, 0]
    assert page.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    asked = [e["params"]["request"]["url"] for e in events if e["method"].endswith("WillBeSent")]
    assert len(asked) > 4
    assert {url[: url.index("/", 8)] for url in asked} == {served[: served.index("/", 8)]}
    assert page.current_url == served.partition("?")[0]  # the token is not in the address bar


ATTACK = """<!doctype html><meta charset="utf-8"><script>
const page = "%s";
window.tried = (async () => {
  const outcomes = [];
  const attempt = async (path, options) => {
    try {
      const reply = await fetch(page + path, { credentials: "include", ...options });
      outcomes.push([reply.type, (await reply.text()).length]);
    } catch (problem) { outcomes.push(["refused", 0]); }
  };
  const body = JSON.stringify({ row: 0, answer: 1 });
  await attempt("/", {});
  await attempt("/ask/answer", { method: "POST", body, headers: { "Content-Type": "application/json" } });
  await attempt("/ask/answer", { method: "POST", body, mode: "no-cors" });
  await attempt("/ask/undo", { method: "POST", body: "{}", mode: "no-cors" });
  await attempt("/static/labelling.js", { mode: "no-cors" });
  const frame = document.createElement("iframe");
  frame.name = "frame";
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, { action: page + "/ask/undo", method: "post", target: "frame", enctype: "text/plain" });
  document.body.append(form);
  await new Promise((done) => { frame.onload = done; form.submit(); });
  let inside = "nothing";
  try { inside = frame.contentDocument.body.textContent; } catch {}
  outcomes.push(["frame", (inside ?? "").length && inside !== "nothing" ? 1 : 0]);
  return outcomes;
})();
</script><body></body>"""  # noqa: E501 - HTML


def test_a_hostile_page_of_the_same_browser_can_neither_read_nor_answer(
    page, session, served, tmp_path
):
    """It comes from this machine too, the worst case: the browser then sends it our cookie."""
    answered = [(answer(page, "a"), 1)]
    folder = tmp_path / "hostile"
    folder.mkdir()
    (folder / "index.html").write_text(ATTACK % served[: served.index("/", 8)], "utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    handler.log_message = lambda *_: None
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as hostile:
        threading.Thread(target=hostile.serve_forever, daemon=True).start()
        page.get(f"http://127.0.0.1:{hostile.server_address[1]}/")
        outcomes = page.execute_async_script("window.tried.then(arguments[0])")
        hostile.shutdown()
    assert len(outcomes) == 6
    assert all(length == 0 for _, length in outcomes), outcomes
    assert given(session) == answered
    page.get(served.partition("?")[0])
    until(page, lambda: heading(page).startswith("Row"))  # the page itself is still let in


@pytest.fixture(scope="module")
def wordy_address():
    rows = wordy(120).drop(columns="fraud")
    session = Session(rows, columns={NAMES["id"]: "ignore"}, fit_every=None, random_state=0)
    with session, serving(PageApi(session)) as address:
        for label in (1, 0):
            session.answer(session.next().row, label)
        yield address


@pytest.mark.parametrize("width", [*WIDTHS, 700])
def test_a_row_has_the_room_for_long_names_and_numbers(width, chromium, wordy_address):
    page = opened(chromium, wordy_address, Screen(width, 844, is_mobile=width < 500))
    assert page.execute_script(BROKEN, ".title, .cells :is(th, td)") == []
    head, press = (
        page.find_element("css selector", css).rect for css in (".cells tbody", ".press")
    )
    assert head["y"] < 430  # what comes before the first column
    assert press["y"] + press["height"] < 845  # the buttons stay in sight
