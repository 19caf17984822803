#!/usr/bin/env python3
"""Measures what it costs to build the smallest program of each library, those in minimal/.

    ./build_cost.py [PROGRAM...]         builds each from nothing -> results/build.jsonl, and prints a table
    ./build_cost.py --warm [PROGRAM...]  in the usual target directory: sizes and crates, without times

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
PROGRAMS = ["raf", "raf-tool", "raw-json", "async-openai", "agent-framework", "genai", "rig"]
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


def measure(name, warm):
    package = f"minimal-{name}"
    every, own = crates(package)
    row = {"program": name, "crates": every, "own": own}
    with tempfile.TemporaryDirectory() as scratch:
        target = os.environ.get("CARGO_TARGET_DIR", HERE / "target") if warm else scratch
        before, start = children(), time.monotonic()
        cargo("build", "--release", "--quiet", "--jobs", "2", "--package", package, "--target-dir", target)
        if not warm:
            row |= {"wall_s": time.monotonic() - start, "cpu_s": children() - before}
        program = pathlib.Path(scratch) / "stripped"
        subprocess.run(["strip", "-o", program, pathlib.Path(target) / "release" / package], check=True)
        row["mib"] = program.stat().st_size / 2**20
    return row


def table(rows):
    names = [row["program"] for row in rows]
    lines = ["| | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for title, field, form in TABLE:
        cells = (form.format(row[field]) if field in row else "" for row in rows)
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    arguments = sys.argv[1:]
    warm = "--warm" in arguments
    names = [name for name in arguments if name != "--warm"] or PROGRAMS
    cargo("fetch", "--quiet")
    results = HERE / "results"
    results.mkdir(exist_ok=True)
    kept = results / "build.jsonl"
    lines = kept.read_text().splitlines() if kept.exists() else []
    rows = {row["program"]: row for row in map(json.loads, lines)}
    for name in names:
        # What was measured before stands where this does not measure it.
        rows[name] = rows.get(name, {}) | measure(name, warm)
        ordered = [rows[each] for each in PROGRAMS if each in rows]
        kept.write_text("".join(json.dumps(row) + "\n" for row in ordered))
        print(json.dumps(rows[name]), file=sys.stderr, flush=True)
    print(table(ordered))


if __name__ == "__main__":
    main()
