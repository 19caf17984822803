//! Works that are measured, each with a size: `work(name, size)` does one. The timed benchmarks and
//! the counted ones (`main.rs`) share them.

mod durable;
mod pieces;
mod replay;
mod runs;

pub use durable::{StepCost, durable_run};
pub use pieces::{arguments, events, fold, history, request_body, request_client, validate};
pub use replay::Replay;
pub use runs::{Shape, lookup_tools, run, stack};

/// A work: its name, what its size counts, and what does it.
#[derive(Debug)]
pub struct Work {
    /// Its name.
    pub name: &'static str,
    /// What the size counts.
    pub unit: &'static str,
    /// Sizes that a curve is drawn through.
    pub sizes: [u32; 4],
    /// Does it once.
    pub run: fn(u32),
}

/// All works.
pub const WORKS: &[Work] = &[
    work("rounds", "rounds of one run", [2, 8, 32, 64], |size| {
        run(&Shape::default().rounds(size));
    }),
    work(
        "durable",
        "rounds of one run in SQLite",
        [2, 8, 32, 64],
        |size| {
            durable_run(0, size);
        },
    ),
    work("calls", "calls in one reply", [1, 8, 64, 256], |size| {
        run(&Shape::default().calls(size));
    }),
    work(
        "history",
        "messages before the run",
        [10, 100, 1_000, 5_000],
        |size| {
            run(&Shape::default().history(size));
        },
    ),
    work(
        "layers",
        "layers under 1,000 deltas",
        [1, 4, 16, 32],
        |size| {
            run(&Shape::default().rounds(1).deltas(1_000).layers(size));
        },
    ),
    work(
        "deltas",
        "text deltas of one reply",
        [10, 100, 1_000, 10_000],
        |size| {
            run(&Shape::default().rounds(1).deltas(size));
        },
    ),
    work(
        "fragments",
        "fragments of one argument text",
        [10, 100, 1_000, 10_000],
        |size| {
            arguments(size);
        },
    ),
    work("tools", "tools offered", [4, 16, 64, 256], |size| {
        run(&Shape::default().tools(size));
    }),
    work("runs", "runs at once", [1, 10, 100, 1_000], |size| {
        run(&Shape::default().at_once(size));
    }),
];

const fn work(name: &'static str, unit: &'static str, sizes: [u32; 4], run: fn(u32)) -> Work {
    Work {
        name,
        unit,
        sizes,
        run,
    }
}
