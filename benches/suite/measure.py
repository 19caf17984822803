#!/usr/bin/env python3
"""Counts the instructions of the works of raf-benches, by callgrind.

    ./measure.py curves    each work at four sizes, and what a step of a durable run costs -> curves.json,
                           plot and tables of docs/performance.md
    ./measure.py record    each work at its second size -> instructions.json, the last figures
    ./measure.py check     the same, compared with the last figures: more than 5 % more is a failure (exit
                           code 1); more than 5 % less, or a work without a figure, asks for `record`

A figure is the difference between three times and one, so that what happens once drops out. It does
not depend on other load. Needs valgrind and cargo; CARGO_TARGET_DIR is heeded.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import document  # noqa: E402

PLOT = ROOT / "docs" / "performance.svg"
TOLERANCE = 0.05
HISTORIES = [10, 100, 1_000, 5_000]


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
    """Prints each figure beside the last one; returns the exit code."""
    before = json.loads((HERE / "instructions.json").read_text())
    worse = outdated = False
    for name, now in figures(program).items():
        if name not in before:
            outdated = True
            print(f"{name:16} {now:12,}     new")
            continue
        change = now / before[name] - 1
        worse |= change > TOLERANCE
        outdated |= change < -TOLERANCE
        note = "  <- worse" if change > TOLERANCE else "  <- better" if change < -TOLERANCE else ""
        print(f"{name:16} {now:12,} {change:+7.1%}{note}")
    if outdated:
        print("the last figures are out of date: ./measure.py record")
    return 1 if worse else 0


def step(program, history):
    """What a round adds to a durable run behind so many messages: bytes written and microseconds.

    The difference between 24 rounds and 8, so that what a run costs once drops out: the messages before
    it are written once. Medians of seven; time depends on other load, bytes do not."""

    def runs(rounds):
        command = [program, "step", str(history), str(rounds)]
        lines = [subprocess.run(command, check=True, capture_output=True, text=True).stdout for _ in range(7)]
        return [statistics.median(column) for column in zip(*(map(int, line.split()) for line in lines))]

    return [(long - short) / 16 for long, short in zip(runs(24), runs(8))]


def curves(program):
    rows = []
    for name, unit, sizes in works(program):
        values = count(program, [(name, size) for size in sizes])
        rows.append({"name": name, "unit": unit, "sizes": sizes, "instructions": values})
        print(f"{name:10} {values}", flush=True)
    steps = [step(program, history) for history in HISTORIES]
    for name, place in (("step: bytes", 0), ("step: µs", 1)):
        values = [round(each[place]) for each in steps]
        rows.append({"name": name, "unit": "messages before", "sizes": HISTORIES, "values": values})
        print(f"{name:10} {values}", flush=True)
    (HERE / "curves.json").write_text(json.dumps(rows, indent=1) + "\n")
    PLOT.write_text(plot(rows))
    document.put("curves", table(rows))


def table(rows):
    counted = [row for row in rows if "instructions" in row]
    lines = ["| | from | to | instructions grow by |", "|---|---:|---:|---:|"]
    for row in counted:
        # From the second size on: the first is mostly what a run costs once.
        sizes, values = row["sizes"][1:], row["instructions"][1:]
        lines.append(f"| {row['unit']} | {sizes[0]:,} | {sizes[-1]:,} | {values[-1] / values[0]:.1f} |")
    kept = [row for row in rows if "values" in row]
    lines += ["", "| a round of a durable run behind | " + " | ".join(f"{n:,} messages" for n in HISTORIES) + " |"]
    lines.append("|---|" + "---:|" * len(HISTORIES))
    for row, title in zip(kept, ("bytes written", "µs")):
        lines.append(f"| {title} | " + " | ".join(f"{value:,}" for value in row["values"]) + " |")
    return "\n".join([*lines, "", document.provenance()])


def plot(rows):
    """One small panel per work: instructions, bytes or time over size, both linear, with the line through
    the ends."""
    width, height, columns = 240, 150, 4
    lines = -(-len(rows) // columns)
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width * columns} {height * lines}" '
        'font-family="sans-serif" font-size="10"><rect width="100%" height="100%" fill="white"/>'
    ]
    for place, row in enumerate(rows):
        left, top = width * (place % columns) + 45, height * (place // columns) + 22
        w, h = width - 65, height - 55
        values = row["instructions"] if "instructions" in row else row["values"]
        x_most, y_most = max(row["sizes"]), max(values)
        most = f"{y_most / 1e6:.3g} M" if y_most >= 1e6 else f"{y_most:,}"
        points = [(left + w * x / x_most, top + h - h * y / y_most) for x, y in zip(row["sizes"], values)]
        (x1, y1), (x2, y2) = points[0], points[-1]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        svg += [
            f'<text x="{left}" y="{top - 8}" font-weight="bold">{row["name"]}</text>',
            f'<path d="M{left} {top}V{top + h}H{left + w}" fill="none" stroke="#888"/>',
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#bbb" stroke-dasharray="3 3"/>',
            f'<polyline points="{path}" fill="none" stroke="#0a58ca" stroke-width="1.5"/>',
            *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="#0a58ca"/>' for x, y in points),
            f'<text x="{left - 3}" y="{top + 8}" text-anchor="end">{most}</text>',
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
