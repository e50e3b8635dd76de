"""Check what would be released: `python tools/release_check.py [--dirty] PYTHON ...`.

Builds both packages, here and in a fresh clone, looks into the archives, installs them in empty
environments and uses them there: with the newest versions of what they depend on, on every Python
given, and with the lowest that pyproject.toml allows, on the oldest. Follows the README, too. Says
what it checked, and stops at the first fault with one sentence and exit code 1. Leaves in
build/release the archives, and beside them a list of what each installation holds (an SBOM, in
CycloneDX).

What is not committed would not be released, so a clone with changes is refused; with --dirty it is
checked as it is.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT, ROOT / "bench")
BUILD = ROOT / "build" / "release"
DIST = BUILD / "dist"
# Ray and Spark are tested in environments of their own (make test-engines), with one version each.
EXTRAS = ("flow", "label", "notebook", "onnx", "report", "serve")
# Other versions are not tested: each brings gigabytes of GPU libraries.
TORCH = "torch==2.13.0"
CHECKERS = ("cyclonedx-bom==7.5.0", "twine==7.0.0")
OTHERS_MAY_NOT_READ = 0o077


def main(pythons: Sequence[str], *, is_dirty: bool) -> None:
    """Check everything, what takes longest last."""
    start, project = time.monotonic(), read_project(ROOT)
    versions = {version_of(python): python for python in pythons}
    oldest = project["requires-python"].removeprefix(">=")
    expect(f"Python {oldest}, the oldest allowed, is among those given", oldest in versions)
    check_claims(project, versions)
    check_engines(project)
    if not is_dirty:
        check_committed()
    shutil.rmtree(BUILD, ignore_errors=True)
    say(f"fewlier {project['version']}, commit {commit()}")
    source = ROOT if is_dirty else clone()
    build_twice(source)
    check_archives()
    for version, python in versions.items():
        use(python, f"{version}-newest", [TORCH])
    use(versions[oldest], f"{oldest}-lowest", lowest_versions())
    follow_readme(versions[oldest], source)
    minutes = (time.monotonic() - start) / 60
    say(f"\nEverything holds, on Python {', '.join(versions)} with {TORCH}; {minutes:.0f} min.")


def say(line: str) -> None:
    """Print a line of the report."""
    print(line, flush=True)


def expect(what: str, holds: bool, printed: str = "") -> None:
    """Stop if something does not hold, after what a program printed about it."""
    if not holds:
        sys.exit(f"{printed}\nrelease-check: this does not hold: {what}.")


def attempt(
    *command: str | Path, cwd: Path = ROOT, umask: int = -1, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program, and keep what it prints."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment |= variables
    return subprocess.run(
        command, cwd=cwd, env=environment, umask=umask, capture_output=True, text=True
    )


def run(
    what: str, *command: str | Path, cwd: Path = ROOT, umask: int = -1, **variables: str
) -> str:
    """Run a program that shows that something holds, and return what it prints."""
    done = attempt(*command, cwd=cwd, umask=umask, **variables)
    expect(what, done.returncode == 0, done.stdout + done.stderr)
    return done.stdout


def read_project(folder: Path) -> dict[str, Any]:
    """Return what pyproject.toml says of a package."""
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]


def version_of(python: str) -> str:
    """Return the version of an interpreter, such as 3.11."""
    code = "import sys; print('{}.{}'.format(*sys.version_info))"
    return run(f"{python} is an interpreter", python, "-c", code).strip()


def commit() -> str:
    """Return the commit, and whether the files differ from it."""
    words = ("describe", "--always", "--dirty=, with changes that are not committed")
    return run("the folder is a clone", "git", *words).strip()


def check_claims(project: dict[str, Any], versions: dict[str, str]) -> None:
    """Check that nothing is claimed of versions that is not checked or not so."""
    version = project["version"]
    bench = read_project(ROOT / "bench")
    expect("both packages have the same version", bench["version"] == version)
    expect("both packages claim the same", bench["classifiers"] == project["classifiers"])
    claimed = {
        text.split(" :: ")[-1] for text in project["classifiers"] if ":: Python :: 3." in text
    }
    untested = ", ".join(sorted(claimed - set(versions)))
    expect(f"every Python claimed is given, also {untested}", not untested)
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    is_dated = re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE)
    expect(f"CHANGELOG.md has a section of {version} with a date", is_dated is not None)
    surface = (ROOT / "tests" / "golden" / "surface.txt").read_text("utf-8")
    is_listed = surface.startswith(f"Public surface of fewlier {version}\n")
    expect(f"tests/golden/surface.txt lists {version}", is_listed)


def check_engines(project: dict[str, Any]) -> None:
    """Check that extras tested in environments of their own begin at the versions tested there."""
    extras = project["optional-dependencies"]
    for extra in sorted(set(extras) - {"dev", *EXTRAS}):
        pinned = (ROOT / "tests" / "engines" / extra / "constraints.txt").read_text("utf-8")
        pins = {
            name: pin for name, _, pin in (line.partition("==") for line in pinned.splitlines())
        }
        for need in map(Requirement, extras[extra]):
            is_tested = lower_bound(need) == Version(pins[need.name])
            expect(f"{need} begins at the version that is tested, {pins[need.name]}", is_tested)


def lower_bound(need: Requirement) -> Version:
    """Return the lowest version that a requirement allows."""
    bounds = [Version(bound.version) for bound in need.specifier if bound.operator == ">="]
    expect(f"{need} has one lower bound", len(bounds) == 1)
    return bounds[0]


def check_committed() -> None:
    """Check that the files here are those of the commit."""
    changed = run("the folder is a clone", "git", "status", "--porcelain").splitlines()
    names = ", ".join(line[3:] for line in changed[:5]) + (", ..." if len(changed) > 5 else "")
    advice = "commit these, or check them as they are with --dirty"
    expect(f"everything is committed; {advice}: {names}", not changed)


def clone() -> Path:
    """Clone the commit into another folder, as its owner alone can read it."""
    folder = BUILD / "clone"
    command = ("git", "clone", "--quiet", "--no-hardlinks", ROOT, folder)
    run("the folder can be cloned", *command, umask=OTHERS_MAY_NOT_READ)
    return folder


def build_twice(source: Path) -> None:
    """Build all archives here and in a clone; build the wheels from the sdists, as pip does."""
    say("\nArchives")
    again, from_sdists = BUILD / "again", BUILD / "from_sdists"
    build(ROOT, DIST)
    build(source, again, umask=OTHERS_MAY_NOT_READ)
    wheel = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-cache-dir", "-w", from_sdists)
    # The same hatchling, which signs the wheel with its version.
    pinned = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    run("the sdists can be installed", *wheel, *DIST.glob("*.tar.gz"), **pinned)
    where = "here again" if source == ROOT else "in a fresh clone"
    for path in sorted(DIST.iterdir()):
        is_same = digest(path) == digest(again / path.name)
        expect(f"a build of {path.name} {where} is the same", is_same)
        if path.suffix == ".whl":
            is_same = digest(path) == digest(from_sdists / path.name)
            expect(f"{path.name} is the same when built from the sdist", is_same)
        say(f"  {path.name}  {path.stat().st_size // 1000} kB  sha256 {digest(path)}")
    say(f"  built {where} under another umask, and the wheels from the sdists: the same bytes")


def build(source: Path, target: Path, umask: int = -1) -> None:
    """Build both packages from a folder."""
    for package in PACKAGES:
        command = (sys.executable, "-m", "hatchling", "build", "-d", target)
        folder = source / package.relative_to(ROOT)
        run(f"{package.name} can be built", *command, cwd=folder, umask=umask)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_archives() -> None:
    """Look into the archives, as `make test` does into its own, and ask what PyPI asks."""
    tests = ("tests/test_shipping.py", "--verbose", "--numprocesses=0", "--jaxtyping-packages=")
    command = (sys.executable, "-m", "pytest", *tests)
    shown = run("archives hold what they should", *command, FEWLIER_DIST=str(DIST))
    for name in re.findall(r"::test_(\w+) PASSED", shown):
        say(f"  {name.replace('_', ' ')}")
    checkers = empty_environment(sys.executable, "checkers")
    install(checkers, *CHECKERS)
    run("PyPI takes the metadata", checkers / "twine", "check", "--strict", *DIST.iterdir())
    say("  PyPI takes the metadata, and can show the README (twine check --strict)")


def lowest_versions() -> list[str]:
    """Return the lowest versions allowed: of several bounds the highest, which they all allow."""
    lowest: dict[str, Version] = {}
    for package in PACKAGES:
        project = read_project(package)
        extras = project.get("optional-dependencies", {})
        needs = [need for extra in EXTRAS for need in extras.get(extra, [])]
        for need in map(Requirement, project["dependencies"] + needs):
            if need.name != "fewlier":
                bound = lower_bound(need)
                lowest[need.name] = max(bound, lowest.get(need.name, bound))
    is_tested = Requirement(TORCH).specifier.contains(lowest["torch"])
    expect(f"the lower bound of torch is {TORCH}", is_tested)
    return sorted(f"{name}=={version}" for name, version in lowest.items())


def use(python: str, name: str, constraints: list[str]) -> None:
    """Install the wheels in an empty environment, use them, and list what is there."""
    say(f"\nPython {name.replace('-', ', ')} versions")
    scripts = empty_environment(python, name)
    pins, folder = BUILD / f"{name}.txt", BUILD / f"{name}-files"
    pins.write_text("\n".join(constraints) + "\n", "utf-8")
    folder.mkdir()
    wheel, bench = sorted(DIST.glob("*.whl"))
    smoke = (scripts / "python", "-I", ROOT / "tools" / "smoke.py")
    install(scripts, wheel, "-c", pins)
    list_packages(scripts, BUILD / f"{name}.cdx.json", ())
    say(run(f"fewlier works on {name}", *smoke, cwd=folder).rstrip())
    install(scripts, f"{wheel}[{','.join(EXTRAS)}]", bench, "-c", pins)
    say(f"  with fewlier-bench and the extras {', '.join(EXTRAS)}:")
    list_packages(scripts, BUILD / f"{name}-extras.cdx.json", EXTRAS)
    say(run(f"the extras work on {name}", *smoke, "--extras", cwd=folder).rstrip())
    shutil.rmtree(scripts.parent)


def empty_environment(python: str, name: str, *, has_pip: bool = False) -> Path:
    """Make an environment, and return the folder of its programs."""
    folder, options = BUILD / name, () if has_pip else ("--without-pip",)
    run(f"{python} makes environments", python, "-m", "venv", *options, folder)
    return folder / "bin"


def install(scripts: Path, *what: str | Path) -> None:
    """Install in an environment, which itself has no pip."""
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python")
    run(f"{what[0]} can be installed", *pip, "install", "--quiet", *what)
    run("what is installed goes together", *pip, "check")


def list_packages(scripts: Path, path: Path, extras: Sequence[str]) -> None:
    """Write what an environment holds, as an SBOM, and the versions as a line of the report."""
    for note in scripts.parent.glob("lib/*/site-packages/fewlier*/direct_url.json"):
        note.unlink()  # it says where on this machine the wheel lay
    words = ("environment", "--output-reproducible", "--pyproject", ROOT / "pyproject.toml")
    program = BUILD / "checkers" / "bin" / "cyclonedx-py"
    run("an SBOM can be written", program, *words, "-o", path, scripts / "python")
    text = path.read_text("utf-8")
    parts = json.loads(text)["components"]
    found = {canonicalize_name(part["name"]): part["version"] for part in parts}
    project = read_project(ROOT)
    more = [need for extra in extras for need in project["optional-dependencies"][extra]]
    needs = map(Requirement, more or project["dependencies"])
    direct = {canonicalize_name(need.name) for need in needs}
    expect("the SBOM lists what fewlier needs", direct <= set(found), str(found))
    expect("the SBOM names no folder of this machine", str(ROOT) not in text)
    say(f"  {', '.join(f'{name} {found[name]}' for name in sorted(direct))}")


def follow_readme(python: str, source: Path) -> None:
    """Install as the README says, in a clone, and run all commands and code that it shows."""
    say("\nThe README's installation")
    scripts = empty_environment(python, "readme", has_pip=True)
    readme = (source / "README.md").read_text("utf-8")
    (block,) = re.findall(r"^## Install\n.*?^```\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    path = {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    # A line with an index asks that one alone, and not for long.
    alone = dict.fromkeys(("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"), "")
    alone |= {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "0", "PIP_DEFAULT_TIMEOUT": "20"}
    for line in block.splitlines():
        command, has_index = ("bash", "-c", line), "--index-url" in line
        done = attempt(*command, cwd=source, **path, **(alone if has_index else {}))
        is_done = done.returncode == 0
        expect(f"this line runs: {line}", is_done or has_index, done.stdout + done.stderr)
        say(f"  {line}" if is_done else f"  left out, its index cannot be reached: {line}")
    shown = shutil.copy(source / "README.md", scripts.parent)  # the tool writes what they print
    guide = (scripts / "python", "-I", source / "tools" / "guide.py", shown)
    say(f"  {run('what the README shows runs', *guide, cwd=scripts.parent, **path).rstrip()}")
    run("the demonstration runs", "fewlier", "demo", "-o", "demo", cwd=scripts.parent, **path)
    expect("the demonstration makes a report", (scripts.parent / "demo" / "report.html").exists())
    shutil.rmtree(scripts.parent)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Check what would be released.")
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--dirty", action="store_true", help="also with changes not committed")
    options = parser.parse_args()
    main(options.pythons, is_dirty=options.dirty)
