#!/usr/bin/env python3
"""Writes the results of run.sh into docs/performance.md: ./page.py [RESULTS]."""

import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import document  # noqa: E402

LIBRARIES = {
    "raw": "raw",
    "raw_fast": "raw_fast",
    "raf": "**raf**",
    "raw_json": "raw_json",
    "async-openai": "async-openai 0.43.0",
    "agent-framework": "agent-framework 0.14.0",
    "genai": "genai 0.7.2",
    "rig": "rig 0.44.0",
}
SCENARIOS = {
    "text": "`text`: 20,000 deltas, provider alone",
    "text-agent": "`text-agent`: the same through the agent",
    "tools": "`tools`: 8 calls of 200 fragments",
    "loop": "`loop`: 10 rounds of 4 calls",
    "long": "`long`: the loop behind 2,000 messages",
}
WIRES = {"Chat Completions": "", "Messages": "-messages", "Responses": "-responses"}
# Asks for whole answers when there are tools.
NOT_STREAMED = {("agent-framework", "loop"), ("agent-framework", "long"), ("agent-framework", "concurrent")}


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line] if path.exists() else []


def table(head, rows):
    lines = ["| | " + " | ".join(head) + " |", "|---|" + "---:|" * len(head)]
    return "\n".join(lines + [f"| {title} | " + " | ".join(cells) + " |" for title, cells in rows])


class Results:
    def __init__(self, folder):
        self.counts = {}
        for name in ("instructions", "allocs", "requests"):
            for line in read(folder / f"{name}.jsonl"):
                self.counts[name, line["scenario"], line["lib"]] = line
        self.times = {}
        for line in read(folder / "time.jsonl"):
            self.times.setdefault((line["scenario"], line["lib"]), []).append(line)

    def count(self, name, scenario, lib, field):
        return self.counts.get((name, scenario, lib), {}).get(field)

    def instructions(self, scenario, lib):
        return self.count("instructions", scenario, lib, "per_chunk")

    def time(self, scenario, lib, field="cpu_us_per_chunk"):
        lines = self.times.get((scenario, lib))
        return statistics.median(line[field] for line in lines) if lines else None

    def ratios(self, value, scenarios):
        """One row per scenario: each library as a multiple of the code by hand."""
        rows = []
        for scenario, title in scenarios.items():
            cells = []
            for lib in LIBRARIES:
                mine, base = value(scenario, lib), value(scenario, "raw_json")
                cell = f"{mine / base:.2f}" if mine and base else ""
                cell = f"**{cell}**" if lib == "raf" and cell else cell
                cells.append(cell + (" ¹" if (lib, scenario) in NOT_STREAMED else ""))
            rows.append((title, cells))
        return table(LIBRARIES.values(), rows)

    def wires(self):
        rows = []
        for scenario, title in SCENARIOS.items():
            cells = []
            for end in WIRES.values():
                mine, base = (self.instructions(scenario, lib + end) for lib in ("raf", "raw_json"))
                cells += [f"**{mine / base:.2f}**", f"{mine:,.0f}", f"{base:,.0f}"] if mine and base else [""] * 3
            rows.append((title, cells))
        head = [cell for wire in WIRES for cell in (f"{wire}: raf as a multiple", "raf", "raw_json")]
        return table(head, rows)

    def figures(self):
        libs = [lib for lib in LIBRARIES if lib not in ("raw", "raw_fast")]

        def row(title, value, form="{:,.0f}"):
            return title, [form.format(value(lib)) if value(lib) is not None else "" for lib in libs]

        def allocs(scenario, unit):
            def value(lib):
                line = self.counts.get(("allocs", scenario, lib))
                return line and line["allocs_per_chunk"] * line["chunks"] / line[unit]

            return value

        def memory(lib):
            peak = self.time("concurrent", lib, "max_rss_kb")
            return peak and peak / 1024

        rows = [
            row("instructions per delta, `text`", lambda lib: self.instructions("text", lib)),
            row("instructions per round, `loop`", lambda lib: self.count("instructions", "loop", lib, "per_round")),
            row("allocations per delta, `text`", allocs("text", "chunks"), "{:,.1f}"),
            row("allocations per round, `loop`", allocs("loop", "rounds")),
            row("`concurrent`, 1,000 runs: peak memory, MiB", memory),
            row("`concurrent`: connections", lambda lib: self.count("requests", "concurrent", lib, "connections")),
        ]
        return table(libs, rows)


def main():
    results = Results(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "results")
    document.put("peers", results.ratios(results.instructions, SCENARIOS) + "\n\n" + document.provenance())
    document.put("wires", results.wires())
    document.put("figures", results.figures())
    timed = {name: f"`{name}`" for name in [*SCENARIOS, "concurrent"]}
    document.put("time", results.ratios(results.time, timed))
    build = read(HERE / "results" / "build.jsonl")
    if build:
        import build_cost

        document.put("build", build_cost.table(build))


main()
