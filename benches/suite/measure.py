#!/usr/bin/env python3
"""Counts the instructions of the works of raf-benches, by callgrind.

    ./measure.py curves    each work at four sizes -> curves.json, and the plot for docs/performance.md
    ./measure.py record    each work at its second size -> instructions.json, the last figures
    ./measure.py check     the same, compared with the last figures: more than 5 % is a failure

A figure is the difference between three times and one, so that what happens once drops out. It does
not depend on other load. Needs valgrind and cargo; CARGO_TARGET_DIR is heeded.
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PLOT = ROOT / "docs" / "performance.svg"
TOLERANCE = 0.05


def build():
    subprocess.run(["cargo", "build", "--release", "--quiet", "--package", "raf-benches"], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "raf-benches"


def works(program):
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = (line.split("\t") for line in lines)
    return [(name, unit, json.loads(sizes)) for name, unit, sizes in rows]


def instructions(program, name, size):
    counts = []
    for times in (1, 3):
        with tempfile.NamedTemporaryFile() as out:
            command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}"]
            command += [str(program), name, str(size), str(times)]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        line = next(line for line in text.splitlines() if "Collected" in line)
        counts.append(int(line.rsplit(":", 1)[1]))
    return (counts[1] - counts[0]) // 2


def count(program, pairs):
    with ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        return list(pool.map(lambda pair: instructions(program, *pair), pairs))


def figures(program):
    pairs = [(name, sizes[1]) for name, _, sizes in works(program)]
    return {f"{name} {size}": value for (name, size), value in zip(pairs, count(program, pairs))}


def check(program):
    before = json.loads((HERE / "instructions.json").read_text())
    worse = False
    for name, now in figures(program).items():
        change = now / before[name] - 1 if name in before else 0.0
        worse |= change > TOLERANCE
        print(f"{name:16} {now:12,} {change:+7.1%}{'  <- worse' if change > TOLERANCE else ''}")
    return 1 if worse else 0


def curves(program):
    rows = []
    for name, unit, sizes in works(program):
        values = count(program, [(name, size) for size in sizes])
        rows.append({"name": name, "unit": unit, "sizes": sizes, "instructions": values})
        print(f"{name:10} {values}", flush=True)
    (HERE / "curves.json").write_text(json.dumps(rows, indent=1) + "\n")
    PLOT.write_text(plot(rows))


def plot(rows):
    """One small panel per work: instructions over size, both linear, with the line through the ends."""
    width, height, columns = 240, 150, 4
    lines = -(-len(rows) // columns)
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * columns} {height * lines}" '
        'font-family="sans-serif" font-size="10"><rect width="100%" height="100%" fill="white"/>'
    ]
    for place, row in enumerate(rows):
        left, top = width * (place % columns) + 45, height * (place // columns) + 22
        w, h = width - 65, height - 55
        x_most, y_most = max(row["sizes"]), max(row["instructions"])
        points = [(left + w * x / x_most, top + h - h * y / y_most) for x, y in zip(row["sizes"], row["instructions"])]
        (x1, y1), (x2, y2) = points[0], points[-1]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        svg += [
            f'<text x="{left}" y="{top - 8}" font-weight="bold">{row["name"]}</text>',
            f'<path d="M{left} {top}V{top + h}H{left + w}" fill="none" stroke="#888"/>',
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#bbb" stroke-dasharray="3 3"/>',
            f'<polyline points="{path}" fill="none" stroke="#0a58ca" stroke-width="1.5"/>',
            *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="#0a58ca"/>' for x, y in points),
            f'<text x="{left - 3}" y="{top + 8}" text-anchor="end">{y_most / 1e6:.3g} M</text>',
            f'<text x="{left + w}" y="{top + h + 12}" text-anchor="end">{x_most:,} {row["unit"]}</text>',
        ]
    return "\n".join(svg) + "\n</svg>\n"


def main():
    what = sys.argv[1] if len(sys.argv) == 2 else ""
    if what not in ("curves", "record", "check"):
        sys.exit(__doc__)
    program = build()
    if what == "check":
        sys.exit(check(program))
    if what == "curves":
        return curves(program)
    (HERE / "instructions.json").write_text(json.dumps(figures(program), indent=1) + "\n")


main()
