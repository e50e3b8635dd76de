"""What the log of a service says, in JSON alone."""

import json
import logging
import subprocess
import sys

from fewlier.service.log import JsonLines

SECRET = "4111 1111 1111 1111"


def fail():
    raise ValueError(f"could not convert {SECRET!r}")


def test_an_error_is_logged_by_type_and_place_and_not_by_its_message():
    try:
        try:
            fail()
        except ValueError as error:
            raise KeyError(SECRET) from error
    except KeyError as error:
        facts = (type(error), error, error.__traceback__)
    record = logging.LogRecord("a", logging.ERROR, "", 0, "it failed", None, facts)
    line = JsonLines().format(record)
    assert SECRET not in line
    found = json.loads(line)["traceback"]
    assert [name for name in found if name.isidentifier()] == ["KeyError", "ValueError"]
    assert found[-1].endswith(" fail")
    assert f"{__file__}:" in found[-1]


def test_what_other_libraries_log_is_json_too():
    code = """
import asyncio, logging.config, warnings
from fewlier.service.log import LOGGING
logging.config.dictConfig(LOGGING)
logging.captureWarnings(True)
async def main():
    context = {"message": "socket.accept() out of system resource", "exception": OSError("no")}
    asyncio.get_running_loop().call_exception_handler(context)
    warnings.warn("beware")
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    facts = [json.loads(line) for line in done.stderr.splitlines()]
    assert [one["level"] for one in facts] == ["error", "warning"]
    assert facts[0]["traceback"] == ["OSError"]
