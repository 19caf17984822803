"""Puts what was measured into docs/performance.md, and says on what it was measured."""

import os
import platform
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"


def put(name, text):
    """Replaces what stands between the two marks of this name."""
    start, end = f"<!-- measured: {name} -->", f"<!-- end: {name} -->"
    page = PAGE.read_text()
    if page.count(start) != 1 or page.count(end) != 1:
        raise SystemExit(f"{PAGE}: no place for {name}")
    before, rest = page.split(start)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{start}\n{text.strip()}\n{end}{after}")


def provenance():
    """The commit, the machine and the load that figures are of."""
    git = ["git", "log", "-1", "--format=%h", "--", "crates", "benches"]
    commit = subprocess.run(git, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
    rust = subprocess.run(["rustc", "--version"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    load = os.getloadavg()[1]
    return (
        f"Commit {commit}, Rust {rust.split()[1]}, {os.cpu_count()} cores of "
        f"{model[1].strip() if model else platform.machine()}, load {load:.0f} at the end of the measurement."
    )
