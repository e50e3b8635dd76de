"""`fewlier serve`: a model behind HTTP."""

import os
from pathlib import Path
from typing import Annotated

import typer

from fewlier.cli.options import option
from fewlier.cli.screen import say
from fewlier.errors import UserError, missing_package
from fewlier.service.limits import Limits

VARIABLE = "FEWLIER_TOKEN"
"""Environment variable that may hold the token."""
MIN_TOKEN = 16
_USUAL = Limits()
_LIMITS = "Limits of a request"
_ACCESS = "Who may ask"


def serve(  # noqa: PLR0913 - options of a command are its arguments
    model: Annotated[Path, typer.Argument(help="Model file.", metavar="MODEL")],
    host: Annotated[str, option("Address to listen on.", "ADDRESS")] = "127.0.0.1",
    port: Annotated[int, option("Port; 0 is any that is free.", "N", min=0, max=65535)] = 8000,
    workers: Annotated[int, option("Processes that answer requests.", "N", min=1)] = 1,
    token_file: Annotated[
        Path | None,
        option(
            f"File with the token that requests must carry; or set {VARIABLE}.",
            "FILE",
            panel=_ACCESS,
        ),
    ] = None,
    no_token: Annotated[
        bool,
        option("Answer anybody who can reach the address.", "", "--no-token", panel=_ACCESS),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        option("Another host name that requests may use. Repeatable.", "NAME", panel=_ACCESS),
    ] = None,
    max_body: Annotated[int, option("Bytes.", "N", min=1, panel=_LIMITS)] = _USUAL.body,
    max_rows: Annotated[int, option("Rows.", "N", min=1, panel=_LIMITS)] = _USUAL.rows,
    max_seconds: Annotated[
        float,
        option(
            "Seconds for a request to arrive, and again to be answered.",
            "S",
            min=0.1,
            panel=_LIMITS,
        ),
    ] = _USUAL.seconds,
    max_waiting: Annotated[
        int, option("Requests that may wait in a worker.", "N", min=1, panel=_LIMITS)
    ] = _USUAL.waiting,
) -> None:
    """Serve scores over HTTP until Ctrl-C or a termination signal."""
    token = read_token(token_file)
    try:
        import fastapi  # noqa: F401 - of the workers, who could not say it as well

        from fewlier.service.server import Address
        from fewlier.service.server import serve as run
    except ModuleNotFoundError as error:
        needs = "A service needs fastapi, uvicorn and prometheus-client"
        raise missing_package(needs, error, "serve") from error
    address = Address(host, port, tuple(allow_host or ()), token)
    check_open(address.is_loopback, token, no_token, bool(allow_host))
    run(model, address, Limits(max_body, max_rows, max_seconds, max_waiting), workers, say)


def read_token(path: Path | None) -> str | None:
    """Return the token in a file, else in the environment, if there is one."""
    token = os.environ.pop(VARIABLE, "")  # workers do not inherit it
    where = VARIABLE
    if path is not None:
        where = str(path)
        try:
            token = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"--token-file must name a file of text; got {path}: {error}."
            ) from error
    elif not token:
        return None
    token = token.strip()
    if len(token) < MIN_TOKEN or not (token.isascii() and token.isprintable()) or " " in token:
        raise UserError(
            f"A token must be at least {MIN_TOKEN} letters, digits or signs without spaces; "
            f"{where} holds another. Make one with: openssl rand -hex 32"
        )
    return token


def check_open(is_loopback: bool, token: str | None, no_token: bool, has_names: bool) -> None:
    """Refuse to be open to others by accident."""
    if token is not None and no_token:
        raise UserError("--no-token must come without a token; got one too. Leave one out.")
    if is_loopback or token is not None:
        return
    if not no_token:
        raise UserError(
            "A service that other machines reach must ask for a token. Name a file with "
            f"--token-file, set {VARIABLE}, or say --no-token."
        )
    if not has_names:
        raise UserError(
            "Without a token a service must know by which names it is asked, or any page in a "
            "browser could ask it. Name them with --allow-host."
        )
