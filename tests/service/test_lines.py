"""What the log of a service says of an error."""

import json
import logging

from fewlier.service.lines import JsonLines

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
