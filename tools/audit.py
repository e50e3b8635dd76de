"""Ask for known vulnerabilities of pinned packages: `python tools/audit.py FILE [options]`.

pip-audit does the asking and takes the options. A vulnerability fails (exit code 1), and so does
anything else that goes wrong, except that no advisory could be had: then one line says so and the
exit code is 0, because a machine that only reaches a package mirror must still be able to build.
"""

import json
import subprocess
import sys
from collections.abc import Sequence

# What pip-audit's last lines name when it could not ask: its own errors and those of requests.
UNREACHABLE = (
    *("ConnectionError", "ProxyError", "SSLError", "Timeout"),
    *("ServiceError", "may be blocking this service"),
)


def main(arguments: Sequence[str]) -> int:
    """Audit a file of pinned requirements, print what was found, return the exit code."""
    command = [sys.executable, "-m", "pip_audit", "--format=json", "--progress-spinner=off"]
    command += ["--no-deps", "--disable-pip", "--requirement", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    message, code = verdict(done.stdout, done.stderr)
    print(message)
    return code


def verdict(report: str, errors: str) -> tuple[str, int]:
    """Say in a few lines, and as an exit code, what pip-audit's report and errors mean."""
    if not report.strip():
        last = "\n".join(errors.strip().splitlines()[-3:])
        if any(name in last for name in UNREACHABLE):
            return "audit: SKIPPED, the advisory database cannot be reached", 0
        return f"audit: pip-audit failed:\n{errors.strip()}", 1
    packages = json.loads(report)["dependencies"]
    asked = [package for package in packages if "skip_reason" not in package]
    found = [
        f"{package['name']} {package['version']}: {advisory['id']}, "
        f"fixed in {', '.join(advisory['fix_versions']) or 'no version yet'}"
        for package in asked
        for advisory in package["vulns"]
    ]
    if found:
        return "\n".join([f"audit: {len(found)} known vulnerabilities", *found]), 1
    if not asked:
        return "audit: SKIPPED, the advisory database knows none of the packages", 0
    return f"audit: no known vulnerability in {len(asked)} of {len(packages)} packages", 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
