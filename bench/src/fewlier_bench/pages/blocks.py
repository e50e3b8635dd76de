"""Pages of prose with parts between marks that are generated from results."""

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from fewlier.errors import UserError
from fewlier.files.atomic import replacing

EMPTY = "No results yet.\n"
_BEGIN, _END = "<!-- begin generated: ", "<!-- end generated -->"
_BLOCK = re.compile(rf"({_BEGIN}([^\n]+) -->\n).*?({_END})", re.DOTALL)


def read_page(page: Path, names: Collection[str], example: str) -> str:
    """Read a page whose generated parts, each with an end, must be among the names."""
    if not page.is_file():
        raise UserError(
            f"The page must be a Markdown file with generated parts; got {page}, which is not a "
            f"file. Name {example}, or a copy of it."
        )
    text = page.read_text("utf-8")
    found = [block[2] for block in _BLOCK.finditer(text)]
    unknown = [name for name in found if name not in names]
    if unknown or not found:
        raise UserError(
            f"Generated parts of {page} must be among {', '.join(names)}; got "
            f"{', '.join(unknown) or 'none'}. Put '{_BEGIN}NAME -->' and '{_END}' around each, on "
            "lines of their own."
        )
    if not len(found) == text.count(_BEGIN) == text.count(_END):
        raise UserError(
            f"Each generated part of {page} must end before the next begins; got "
            f"{text.count(_BEGIN)} that begin and {text.count(_END)} that end. Put "
            f"'{_END}' after each."
        )
    return text


def fill(text: str, blocks: Mapping[str, str]) -> str:
    """Return the text with its generated parts replaced."""
    return _BLOCK.sub(lambda found: f"{found[1]}\n{blocks[found[2]]}\n{found[3]}", text)


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, in a folder that is made if it is not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())
