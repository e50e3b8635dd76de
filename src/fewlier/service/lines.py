"""How the processes of a service write their log: one JSON object a line."""

import json
import logging
import time
import traceback
from typing import Any, final

_PLAIN = logging.makeLogRecord({}).__dict__.keys() | {"message", "taskName", "color_message"}
_MAX_PLACES = 200


@final
class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON, with what it was given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        more = {name: value for name, value in vars(record).items() if name not in _PLAIN}
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        facts: dict[str, Any] = {
            "time": f"{moment}.{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1]:
            facts["traceback"] = _places(record.exc_info[1])
        return json.dumps(facts | more | {"process": record.process}, default=str)


def _places(error: BaseException | None) -> list[str]:
    """Return the type of an error and where it was raised, and its causes; messages quote cells."""
    found: list[str] = []
    while error is not None and len(found) < _MAX_PLACES:
        walked = traceback.walk_tb(error.__traceback__)
        frames = traceback.StackSummary.extract(walked, lookup_lines=False)
        found.append(type(error).__name__)
        found += [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        error = error.__cause__ or error.__context__
    return found


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "fewlier.service.lines.JsonLines"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "loggers": {
        "fewlier.service": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
    },
}
"""The configuration of logging in every process of a service."""
