"""`Guard`: only the browser that was given the address may see the page and answer."""

import secrets
from typing import final

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_CLOSED = "Open the address that fewlier printed when it started this page."


@final
class Guard:
    """Stands before an application and refuses, in this order, what does not come from its page.

    - A Host other than the server's own: another site's name that was made to point here.
    - A request that another site or origin sends, as the browser says of it.
    - One without the token: in the address, where it becomes a cookie, or in that cookie.
    - A body that is not JSON: a form of another site cannot send JSON unasked.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    token : str
        What the address carries.
    port : int
        Where the server listens, on loopback.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app = app
        self.token = token
        self.cookie = f"fewlier-{port}"  # browsers share cookies among the ports of a host
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        if scope["type"] != "http":
            return  # nothing else is spoken here, and a server takes silence for a refusal
        headers = Headers(scope=scope)
        brings_token = scope["path"] == "/" and self._is_token(
            QueryParams(scope["query_string"]).get("token", "")
        )

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                out.update(_HEADERS)
                if brings_token:
                    given = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
                    out.append("Set-Cookie", given)
            await send(message)

        refused = self._refuse(scope["method"], headers, brings_token)
        answer = self.app if refused is None else PlainTextResponse(refused[1], refused[0])
        brings_token = brings_token and refused is None
        await answer(scope, receive, send_guarded)

    def _refuse(self, method: str, headers: Headers, brings_token: bool) -> tuple[int, str] | None:
        """Return why a request is refused, with the status of HTTP; None if it is not."""
        host = headers.get("host", "")
        if host not in self.hosts:
            return 403, _CLOSED
        if brings_token and method == "GET":
            return None  # wherever the link stood, who has the token may come in
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, _CLOSED
        if not self._is_token(cookie_parser(headers.get("cookie", "")).get(self.cookie, "")):
            return 403, _CLOSED
        if method in ("GET", "HEAD"):
            return None
        if headers.get("origin") != f"http://{host}":
            return 403, _CLOSED
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "A request must be JSON."
        return None

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(), self.token.encode())
