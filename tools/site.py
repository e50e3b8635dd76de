"""A hook of MkDocs: what the site has besides the pages of docs/ (`make docs`).

It adds README, SECURITY and the other pages outside docs/, runs the worked examples and shows what
they print and draw, and adds the files that pages link to. Pages have the names of their files in
small letters, and the README is the first. Links between files of the repository become links of
the site, so that both are readable.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import jupytext
from jupyter_client import KernelManager
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OTHERS = {
    ROOT / "README.md": "index.md",
    ROOT / "CHANGELOG.md": "changelog.md",
    ROOT / "CONTRIBUTING.md": "contributing.md",
    ROOT / "SECURITY.md": "security.md",
    ROOT / "bench" / "README.md": "bench.md",
}
EVIDENCE, EXAMPLES = DOCS / "evidence", DOCS / "examples"
SECONDS = 600
"""A cell of an example that takes longer fails."""

FENCE = re.compile(r"^(```+).*?^\1$", flags=re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=[#)])")


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Return the files of the site."""
    kept = [file for file in files if Path(file.abs_src_path or "").suffix not in {".md", ".py"}]
    site = Files(kept)
    for path in sources():
        if path.suffix == ".py":
            add_example(path, site, config)
        else:
            site.append(File.generated(config, name_of(path), abs_src_path=str(path)))
    for path in sources():
        for target in linked(path):
            if site.get_file_from_path(name_of(target)) is None and target.is_file():
                site.append(File.generated(config, name_of(target), abs_src_path=str(target)))
    return site


def on_page_markdown(text: str, *, page: Page, **_: object) -> str:
    """Return the text of a page with links of the site."""
    path = {name_of(path): path for path in sources()}[page.file.src_uri]
    return "".join(
        part if is_code else LINK.sub(lambda found: lead(path, found[0]), part)
        for part, is_code in parts(text)
    )


def sources() -> Iterator[Path]:
    """Yield the files that become pages."""
    yield from OTHERS
    yield from sorted(DOCS.glob("*.md"))
    yield from sorted(EVIDENCE.glob("*.md"))
    yield from sorted(EXAMPLES.glob("*.py"))


def name_of(path: Path) -> str:
    """Return what a file of the repository is called in the site."""
    if path in OTHERS:
        return OTHERS[path]
    if not path.is_relative_to(DOCS):
        return f"files/{path.relative_to(ROOT).as_posix()}"
    if path.suffix in {".md", ".py"}:
        return path.relative_to(DOCS).with_suffix(".md").as_posix().lower()
    return path.relative_to(DOCS).as_posix()


def linked(path: Path) -> Iterator[Path]:
    """Yield what a page links to."""
    for part, is_code in parts(path.read_text("utf-8")):
        for target in () if is_code else LINK.findall(part):
            yield (path.parent / target).resolve()


def lead(path: Path, target: str) -> str:
    """Return the link of the site for a link between files of the repository."""
    name = name_of((path.parent / target).resolve())
    return Path(os.path.relpath(name, Path(name_of(path)).parent)).as_posix()


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """Divide a text into parts of prose and blocks of code."""
    end = 0
    for block in FENCE.finditer(text):
        yield text[end : block.start()], False
        yield block[0], True
        end = block.end()
    yield text[end:], False


def add_example(path: Path, site: Files, config: MkDocsConfig) -> None:
    """Run an example, and add what it says, prints and draws as a page with its pictures."""
    notebook = jupytext.read(path)
    with tempfile.TemporaryDirectory() as folder:
        # By sockets in the folder: opens no port.
        kernel = KernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/socket")
        where = {"metadata": {"path": folder}}
        try:
            NotebookClient(notebook, km=kernel, timeout=SECONDS, resources=where).execute()
        finally:
            kernel.shutdown_kernel(now=True)
    resources = {"unique_key": path.stem, "output_files_dir": path.stem}
    text, found = MarkdownExporter().from_notebook_node(notebook, resources)
    pictures: Mapping[str, bytes] = found["outputs"]
    name = name_of(path)
    site.append(File.generated(config, name, content=text))
    for picture, content in pictures.items():
        uri = (Path(name).parent / picture).as_posix()
        site.append(File.generated(config, uri, content=content))
