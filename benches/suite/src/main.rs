//! Does one work so often: what a counter of instructions is put around (`measure.py`).
//!
//! `raf-benches` lists the works as `name unit sizes`; `raf-benches NAME SIZE TIMES` does one.
//! `raf-benches step HISTORY ROUNDS` makes one durable run and says its bytes and microseconds.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for the command line"
)]

use std::process::ExitCode;

use raf_benches::{WORKS, durable_run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, size, times] = arguments.as_slice() else {
        for work in WORKS {
            println!("{}\t{}\t{:?}", work.name, work.unit, work.sizes);
        }
        return ExitCode::SUCCESS;
    };
    if let ("step", Ok(history), Ok(rounds)) = (name.as_str(), size.parse(), times.parse()) {
        let cost = durable_run(history, rounds);
        println!("{}\t{}", cost.bytes, cost.time.as_micros());
        return ExitCode::SUCCESS;
    }
    let work = WORKS.iter().find(|work| work.name == name);
    let (Some(work), Ok(size), Ok(times)) = (work, size.parse(), times.parse::<u32>()) else {
        eprintln!("no such work: {name} {size} {times}");
        return ExitCode::FAILURE;
    };
    (0..times).for_each(|_| (work.run)(size));
    ExitCode::SUCCESS
}
