"""The bytes of a table file from its beginning, unpacked where it is compressed, within bounds."""

import io
from typing import IO, Any, final

import pyarrow as pa

from fewlier.errors import UserError

MAX_HEADER_BYTES = 2**20
"""A longer first line is no header."""
MAX_GROWTH = 200
"""Bytes that one compressed byte may become: text grows by 3 to 30 times, bombs a thousandfold."""
# So much is unpacked before it is asked how much it grew, at first and between two blocks.
_PEEK_BYTES = 16 * 2**20
_CODECS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


@final
class Unpacked:
    """An open file as text.

    Parameters
    ----------
    head : bytes
        What was read of the file already.
    file : binary file
        The rest of it.
    """

    def __init__(self, head: bytes, file: IO[bytes]) -> None:
        self._packed = Rejoined(head, file)
        codecs = [codec for magic, codec in _CODECS.items() if head.startswith(magic)]
        source: Any = self._packed
        if codecs:
            source = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), codecs[0])
        start = first_bytes(source, _PEEK_BYTES if codecs else MAX_HEADER_BYTES)
        self.stream = Rejoined(start, source)
        self._check(len(start))
        self.head = start[:MAX_HEADER_BYTES]
        if len(start) >= MAX_HEADER_BYTES and not {10, 13} & set(self.head):
            raise UserError(
                f"a table must begin with a header of at most {MAX_HEADER_BYTES:,} bytes; got a "
                "longer line. Check that it is a table."
            )

    def check(self) -> None:
        """Refuse a file that has grown too much so far."""
        self._check(self.stream.n_bytes)

    def _check(self, n_bytes: int) -> None:
        if n_bytes >= _PEEK_BYTES and n_bytes > MAX_GROWTH * self._packed.n_bytes:
            raise UserError(
                f"a compressed table may grow {MAX_GROWTH}-fold when it is unpacked; got "
                f"{n_bytes:,} bytes from {self._packed.n_bytes:,}. If it is a table all the same, "
                "unpack it first."
            )


@final
class Rejoined(io.RawIOBase):
    """A stream of which some first bytes have been read, from its beginning."""

    def __init__(self, head: bytes, rest: Any) -> None:  # noqa: ANN401 - Python's files or arrow's
        self._head, self._rest = memoryview(head), rest
        self.n_bytes = self.n_quotes = 0  # read so far

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - a memory view
        """Fill a buffer, or some of it."""
        chunk = self._head[: len(buffer)].tobytes()
        self._head = self._head[len(chunk) :]
        chunk = chunk or self._rest.read(len(buffer))
        buffer[: len(chunk)] = chunk
        self.n_bytes += len(chunk)
        self.n_quotes += chunk.count(b'"')
        return len(chunk)


def first_bytes(stream: Any, n: int) -> bytes:  # noqa: ANN401 - Python's files or arrow's
    """Read up to n bytes; a pipe may give them in pieces."""
    parts, found = [], 0
    while found < n and (part := stream.read(n - found)):
        parts.append(part)
        found += len(part)
    return b"".join(parts)
