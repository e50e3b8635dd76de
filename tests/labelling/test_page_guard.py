"""Who may see the page and answer: the browser that was given the address, and nobody else.

That nothing here has answered, the fixture `untouched` looks after.
"""

import json
import socket
import sys

import pytest
from starlette.testclient import TestClient

from fewlier.errors import UserError
from fewlier.labelling.page.app import MAX_BODY, make_app, serving
from fewlier.labelling.widget import label

PORT, TOKEN = 8765, "the-right-token"
HOME = f"http://127.0.0.1:{PORT}"
JSON = {"Origin": HOME, "Content-Type": "application/json"}


@pytest.fixture
def stranger(untouched):
    """Return a browser that was not given the address."""
    return TestClient(make_app(untouched, TOKEN, PORT), base_url=HOME)


@pytest.fixture
def friend(stranger):
    """Return a browser that has opened the address; the cookie is what lets it in."""
    assert stranger.get("/", params={"token": TOKEN}).status_code == 200
    return stranger


def ask(browser, action="state", *, body="{}", **headers):
    return browser.post(f"/ask/{action}", content=body, headers=JSON | headers)


def test_who_opens_the_address_may_ask(friend, untouched):
    reply = ask(friend)
    assert reply.status_code == 200
    assert reply.json() == json.loads(json.dumps(untouched.reply("state", {})))
    assert friend.get("/").status_code == 200


def test_the_cookie_is_for_this_page_alone(stranger):
    given = stranger.get("/", params={"token": TOKEN}).headers["set-cookie"]
    assert given == f"fewlier-{PORT}={TOKEN}; HttpOnly; SameSite=Strict; Path=/"


@pytest.mark.parametrize("path", ["/", "/static/labelling.js", "/static/labelling.css"])
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "the-right-tökén"])
def test_without_the_token_nothing_is_shown(path, token, stranger):
    reply = stranger.get(path, params={} if token is None else {"token": token})
    assert (reply.status_code, "set-cookie" in reply.headers) == (403, False)
    assert "table" not in reply.text


def test_the_token_opens_nothing_but_the_page(stranger):
    assert stranger.get("/static/labelling.js", params={"token": TOKEN}).status_code == 403
    reply = stranger.post("/ask/state", params={"token": TOKEN}, content="{}", headers=JSON)
    assert reply.status_code == 403


@pytest.mark.parametrize("cookie", ["wrong", "", TOKEN.upper(), f'"{TOKEN}"x'])
def test_a_wrong_cookie_is_no_cookie(cookie, stranger):
    reply = ask(stranger, Cookie=f"fewlier-{PORT}={cookie}")
    assert reply.status_code == 403
    assert ask(stranger, Cookie=f"fewlier-{PORT + 1}={TOKEN}").status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"evil.example:{PORT}",
        f"127.0.0.1.evil.example:{PORT}",
        "127.0.0.1",
        f"127.0.0.1:{PORT + 1}",
        f"127.0.0.1:{PORT}@evil.example",
        f"localhost.:{PORT}",
        "",
    ],
)
def test_another_name_of_this_machine_is_refused(host, friend):
    """DNS rebinding: a site makes its own name point here, and its scripts become ours."""
    assert friend.get("/", headers={"Host": host}).status_code == 403
    assert friend.get("/", params={"token": TOKEN}, headers={"Host": host}).status_code == 403
    assert ask(friend, Host=host, Origin=f"http://{host}").status_code == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_the_names_of_loopback_are_the_servers_own(name, friend):
    reply = ask(friend, Host=f"{name}:{PORT}", Origin=f"http://{name}:{PORT}")
    assert reply.status_code == 200


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        f"http://localhost:{PORT}",
        "http://127.0.0.1",
        f"{HOME}/",
        "",
    ],
)
def test_another_origin_cannot_answer(origin, friend):
    assert ask(friend, "undo", Origin=origin).status_code == 403


def test_a_request_must_say_where_it_comes_from(friend):
    content_type = {"Content-Type": "application/json"}
    assert friend.post("/ask/state", content="{}", headers=content_type).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_cannot_load_anything(site, friend):
    """Another server on this machine is the same site: the browser sends it the cookie."""
    headers = {"Sec-Fetch-Site": site}
    assert friend.get("/", headers=headers).status_code == 403
    assert friend.get("/static/labelling.js", headers=headers).status_code == 403
    assert ask(friend, **headers).status_code == 403
    opened = friend.get("/", params={"token": TOKEN}, headers=headers)
    assert opened.status_code == 200  # a link in a notebook or a mail


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_form_is_not_json(content_type, friend):
    body = json.dumps({"row": 0, "answer": 1})
    reply = ask(friend, "answer", body=body, **{"Content-Type": content_type})
    assert reply.status_code == 415


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_post_asks(method, friend):
    reply = friend.request(method, "/ask/undo", headers=JSON)
    assert reply.status_code == 405
    assert not any(name.startswith("access-control") for name in reply.headers)


def test_every_reply_forbids_what_the_page_does_not_need(friend):
    for reply in (friend.get("/"), ask(friend), friend.get("/", headers={"Host": "evil.example"})):
        headers = reply.headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert not any(name.startswith("access-control") for name in headers)


def test_a_body_has_an_end(friend):
    assert ask(friend, body=b" " * (MAX_BODY + 1)).status_code == 413


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "1", "null", "[" * 50_000, '{"row": 1e999}', "\xff", "NaN"]
)
def test_what_is_not_a_request_is_refused_in_words(body, friend):
    reply = ask(friend, "answer", body=body)
    assert reply.status_code == 200
    assert reply.json()["error"]


def test_a_port_that_is_taken_is_told(untouched):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=rf"{port}: .*--port"):
            serving(untouched, port).__enter__()


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_a_missing_package_is_told_with_what_installs_it(package, untouched, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"{package} .*'fewlier\[label\]'"):
        serving(untouched).__enter__()


def test_the_widget_says_what_it_needs(session, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(UserError, match=r"anywidget .*'fewlier\[notebook\]'"):
        label(session)
