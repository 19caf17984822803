#!/usr/bin/env python3
"""Measures what it costs to build the smallest program of each library, those in minimal/.

    ./build_cost.py [PROGRAM...]    builds each from nothing -> results/build.jsonl, and prints a table

A build is a release build with two jobs and without debug information, in a target directory that is
thrown away; sources are fetched before. CPU time is that of the compilers, and says more than wall time
on a machine that does other things as well. Crates are the packages that are compiled, build scripts and
macros included; the size is that of the stripped program.
"""

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ENVIRONMENT = {**os.environ, "CARGO_PROFILE_RELEASE_DEBUG": "0"}
TABLE = [
    ("crates", "crates", "{:,.0f}"),
    ("of them the library's own workspace", "own", "{:,.0f}"),
    ("CPU time of a clean build, s", "cpu_s", "{:,.0f}"),
    ("wall time of it, s", "wall_s", "{:,.0f}"),
    ("stripped program, MiB", "mib", "{:.1f}"),
]


def cargo(*arguments, **options):
    return subprocess.run(["cargo", *arguments], cwd=HERE, check=True, env=ENVIRONMENT, **options)


def crates(package):
    """The packages that are compiled for a program, itself left out, and those of them that are paths."""
    command = ["tree", "--package", package, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]
    lines = cargo(*command, capture_output=True, text=True).stdout.splitlines()
    names = {line.removesuffix(" (*)").removesuffix(" (proc-macro)") for line in lines if line}
    names = {name for name in names if not name.startswith(package + " ")}
    return len(names), sum("(/" in name for name in names)


def children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(name):
    package = f"minimal-{name}"
    every, own = crates(package)
    with tempfile.TemporaryDirectory() as target:
        before, start = children(), time.monotonic()
        cargo("build", "--release", "--quiet", "--jobs", "2", "--package", package, "--target-dir", target)
        wall, cpu = time.monotonic() - start, children() - before
        program = pathlib.Path(target) / "release" / package
        subprocess.run(["strip", program], check=True)
        size = program.stat().st_size
    return {"program": name, "crates": every, "own": own, "cpu_s": cpu, "wall_s": wall, "mib": size / 2**20}


def table(rows):
    names = [row["program"] for row in rows]
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for title, field, form in TABLE:
        lines.append(f"| {title} | " + " | ".join(form.format(row[field]) for row in rows) + " |")
    return "\n".join(lines)


def main():
    every = ["raf", "raf-tool", "raw-json", "async-openai", "agent-framework", "genai", "rig"]
    cargo("fetch", "--quiet")
    rows = []
    for name in sys.argv[1:] or every:
        rows.append(measure(name))
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    (results / "build.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    print(table(rows))


if __name__ == "__main__":
    main()
