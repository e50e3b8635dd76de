"""Standard streams that may be closed, full, or unable to encode what is written to them."""

import io
import os
import sys
from typing import Any, final


@final
class _Unfailing(io.FileIO):
    """Standard error: where it cannot be written to, there is nobody to say so to."""

    def write(self, content: Any, /) -> int:  # noqa: ANN401 - bytes or alike
        try:
            return super().write(content)
        except OSError:
            return len(content)


def prepare_streams() -> None:
    """Make the standard streams of this process safe to use.

    A closed one is opened, for otherwise the next file that is opened would get its number, and
    its content. Reading standard input or writing standard output then fails as it should.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)  # gets the lowest free number, which is this one
    sys.stdin = sys.stdin or open(0, encoding="utf-8")  # noqa: SIM115 - open to the end
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    encoding = sys.stderr.encoding if sys.stderr else "utf-8"
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Unfailing(2, "w", closefd=False)),
        encoding,
        errors="backslashreplace",
        line_buffering=True,
    )
