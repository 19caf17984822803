//! Steps of stores: here the records of the in-memory run store; those of durable stores belong here
//! too.

use divan::Bencher;
use raf_core::{RunId, RunRecord};

fn main() {
    divan::main();
}

/// A record there and back: what a paused run costs beside its store.
#[divan::bench]
fn record_as_json(bencher: Bencher<'_, '_>) {
    let record = RunRecord::new(RunId::random());
    bencher.bench(|| serde_json::to_string(&record).expect("a record"));
}
