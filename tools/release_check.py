"""Check what would be released: `python tools/release_check.py PYTHON ...`.

Builds both packages, looks into the archives, installs them in empty environments and uses them
there: with the newest versions of what they depend on, on every Python given, and with the lowest
that pyproject.toml allows, on the oldest. Says what it checked, and stops at the first fault with
one sentence and exit code 1. Leaves in build/release the archives, and beside them a list of what
each installation holds (an SBOM, in CycloneDX).
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGES = (ROOT, ROOT / "bench")
BUILD = ROOT / "build" / "release"
DIST = BUILD / "dist"
# Ray, Spark, MLflow and JupyterLab are tested in environments of their own (make test-engines).
EXTRAS = ("flow", "label", "notebook", "onnx", "report", "serve")
# Other versions are not tested: each brings gigabytes of GPU libraries.
TORCH = "torch==2.13.0"
CHECKERS = ("cyclonedx-bom==7.5.0", "twine==7.0.0")


def main(pythons: list[str]) -> None:
    """Check everything, what takes longest last."""
    project = read_project(ROOT)
    versions = {version_of(python): python for python in pythons}
    oldest = project["requires-python"].removeprefix(">=")
    expect(f"Python {oldest}, the oldest allowed, is among those given", oldest in versions)
    shutil.rmtree(BUILD, ignore_errors=True)
    say(f"fewlier {project['version']}, commit {commit()}")
    build_twice()
    check_archives()
    for version, python in versions.items():
        use(python, f"{version}-newest", [TORCH])
    use(versions[oldest], f"{oldest}-lowest", lowest_versions())
    say(f"\nEverything holds, on Python {', '.join(versions)} with {TORCH}.")
    claimed = {text.split(" :: ")[-1] for text in project["classifiers"] if ":: 3." in text}
    if untested := sorted(claimed - set(versions)):
        say(f"Claimed in pyproject.toml, and not checked here: Python {', '.join(untested)}.")


def say(line: str) -> None:
    """Print a line of the report."""
    print(line, flush=True)


def expect(what: str, holds: bool, printed: str = "") -> None:
    """Stop if something does not hold, after what a program printed about it."""
    if not holds:
        sys.exit(f"{printed}\nrelease-check: this does not hold: {what}.")


def run(what: str, *command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    """Run a program that shows that something holds, and return what it prints."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment |= variables
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
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


def build_twice() -> None:
    """Build all archives, and again; build the wheels from the sdists, as `pip install` does."""
    say("\nArchives")
    again, from_sdists = BUILD / "again", BUILD / "from_sdists"
    for folder in (DIST, again):
        for package in PACKAGES:
            build = (sys.executable, "-m", "hatchling", "build", "-d", folder)
            run(f"{package.name} can be built", *build, cwd=package)
    wheel = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-cache-dir", "-w", from_sdists)
    # The same hatchling, which signs the wheel with its version.
    pinned = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    run("the sdists can be installed", *wheel, *DIST.glob("*.tar.gz"), **pinned)
    for path in sorted(DIST.iterdir()):
        expect(
            f"a second build of {path.name} is the same", digest(path) == digest(again / path.name)
        )
        if path.suffix == ".whl":
            is_same = digest(path) == digest(from_sdists / path.name)
            expect(f"{path.name} is the same when built from the sdist", is_same)
        say(f"  {path.name}  {path.stat().st_size // 1000} kB  sha256 {digest(path)}")
    say("  built twice, and the wheels from the sdists: the same, byte for byte")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_archives() -> None:
    """Look into the archives, as `make test` does too, and ask what PyPI asks."""
    tests = ("tests/test_shipping.py", "--verbose", "--numprocesses=0", "--jaxtyping-packages=")
    shown = run("archives hold what they should", sys.executable, "-m", "pytest", *tests)
    for name in re.findall(r"::test_(\w+) PASSED", shown):
        say(f"  {name.replace('_', ' ')}")
    checkers = empty_environment(sys.executable, "checkers")
    install(checkers, *CHECKERS)
    run("PyPI takes the metadata", checkers / "twine", "check", "--strict", *DIST.iterdir())
    say("  PyPI takes the metadata, and can show the README (twine check --strict)")


def lowest_versions() -> list[str]:
    """Return the lowest versions allowed of what both packages and the extras depend on."""
    lowest: dict[str, str] = {}
    for package in PACKAGES:
        project = read_project(package)
        extras = project["optional-dependencies"]
        needs = [need for extra in EXTRAS for need in extras.get(extra, [])]
        for need in map(Requirement, project["dependencies"] + needs):
            bounds = [bound.version for bound in need.specifier if bound.operator == ">="]
            if need.name != "fewlier":
                expect(f"{need} has one lower bound", len(bounds) == 1)
                lowest[need.name] = f"{need.name}=={bounds[0]}"
    expect(f"the lower bound of torch is {TORCH}", lowest["torch"] == TORCH)
    return sorted(lowest.values())


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
    list_packages(scripts, BUILD / f"{name}.cdx.json")
    say(run(f"fewlier works on {name}", *smoke, cwd=folder).rstrip())
    install(scripts, f"{wheel}[{','.join(EXTRAS)}]", bench, "-c", pins)
    say(f"  with fewlier-bench and the extras {', '.join(EXTRAS)}:")
    say(run(f"the extras work on {name}", *smoke, "--extras", cwd=folder).rstrip())
    shutil.rmtree(scripts.parent)


def empty_environment(python: str, name: str) -> Path:
    """Make an environment, and return the folder of its programs."""
    folder = BUILD / name
    run(f"{python} makes environments", python, "-m", "venv", "--without-pip", folder)
    return folder / "bin"


def install(scripts: Path, *what: str | Path) -> None:
    """Install in an environment, which itself has no pip."""
    pip = (sys.executable, "-m", "pip", "--python", scripts / "python")
    run(f"{what[0]} can be installed", *pip, "install", "--quiet", *what)
    run("what is installed goes together", *pip, "check")


def list_packages(scripts: Path, path: Path) -> None:
    """Write what an environment holds, as an SBOM, and the versions as a line of the report."""
    for note in scripts.parent.glob("lib/*/site-packages/fewlier-*/direct_url.json"):
        note.unlink()  # it says where on this machine the wheel lay
    words = ("environment", "--output-reproducible", "--pyproject", ROOT / "pyproject.toml")
    program = BUILD / "checkers" / "bin" / "cyclonedx-py"
    run("an SBOM can be written", program, *words, "-o", path, scripts / "python")
    found = {
        part["name"]: part["version"] for part in json.loads(path.read_text("utf-8"))["components"]
    }
    direct = {Requirement(need).name for need in read_project(ROOT)["dependencies"]}
    expect("the SBOM lists what fewlier needs", direct <= set(found), str(found))
    say(f"  {', '.join(f'{name} {found[name]}' for name in sorted(direct))}")


if __name__ == "__main__":
    main(sys.argv[1:])
