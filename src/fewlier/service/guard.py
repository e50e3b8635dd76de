"""Who may ask: a request for this host, and with the token where there is one."""

import secrets
from collections.abc import Collection
from typing import final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from fewlier.service.responses import RETRY, failure

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Names of the machine itself."""


@final
class Guard:
    """Stands before an application and refuses requests that are not for it.

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    hosts : collection of str, or None
        Names that a request may give in `Host`; with another name some site on the web could have
        been made to point here. None: any.
    token : str or None
        What requests must bring, but for those about the health of the service.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None, token: str | None) -> None:
        self._app, self._token = app, token
        self._hosts = None if hosts is None else {host.lower() for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, is_free = Headers(scope=scope), is_health(scope["path"])
        if (most := scope.get("state", {}).get("most_connections")) and not is_free:
            answer: ASGIApp = failure(
                503,
                f"This worker serves {most} connections at a time; ask again soon.",
                RETRY | {"Connection": "close"},
            )
        elif self._hosts is not None and host_name(headers.get("host", "")) not in self._hosts:
            answer = failure(421, "This service does not answer for that host.")
        elif not (is_free or self._is_known(headers.get("authorization", ""))):
            answer = failure(
                401,
                "A request must bring the token of this service, as 'Authorization: Bearer TOKEN'.",
                {"WWW-Authenticate": "Bearer"},
            )
        else:
            answer = self._app
        await answer(scope, receive, send)

    def _is_known(self, authorization: str) -> bool:
        if self._token is None:
            return True
        scheme, _, given = authorization.partition(" ")
        # Compared in constant time: how long it takes must not tell how much is right.
        is_token = secrets.compare_digest(given.strip().encode(), self._token.encode())
        return scheme.lower() == "bearer" and is_token


def is_health(path: str) -> bool:
    """Whether a path asks how the service is, which needs no token."""
    return path.startswith(("/health/", "/v2/health/"))


def host_name(host: str) -> str:
    """Return the name in a `Host` header, without port and brackets."""
    name = host.rpartition("]")[0].removeprefix("[") if host.startswith("[") else host.split(":")[0]
    return name.lower()
