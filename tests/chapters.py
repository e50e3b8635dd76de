"""Sections of docs/OPERATE.md that run where their packages are, in tests/engines."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "OPERATE.md"
_BLOCK = re.compile(
    r"^```(?P<kind>sh|py)\n(?P<source>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    flags=re.MULTILINE | re.DOTALL,
)


def check(section, folder):
    """Run a section after the first program of the page; it must print what the page shows."""
    spec = importlib.util.spec_from_file_location("guide", ROOT / "tools" / "guide.py")
    guide = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(guide)
    page, found = PAGE.read_text("utf-8"), []
    first = next(step for step in guide.steps_of(page) if step.is_python)
    blocks = list(_BLOCK.finditer(page.split(f"\n## {section}\n")[1].split("\n## ")[0]))
    assert blocks
    with guide.running(folder) as machine:
        machine.run(first)
        for block in blocks:
            is_python = block["kind"] == "py"
            shown = guide.Step(block["source"], block["output"] or "", is_python=is_python)
            printed = shown._replace(output=machine.run(shown))
            if not guide.alike(shown, printed):
                found.append(guide.difference(shown, printed))
    assert not found, "\n".join(found)
