//! Whole runs over a model without a network.

use divan::counter::ItemsCount;
use raf_benches::{Shape, run};

fn main() {
    divan::main();
}

#[divan::bench(args = [1, 4, 16, 64])]
fn rounds(rounds: u32) {
    run(&Shape::default().rounds(rounds));
}

#[divan::bench(args = [1, 8, 64])]
fn calls_per_round(calls: u32) {
    run(&Shape::default().calls(calls));
}

/// What a layer costs per update.
#[divan::bench(args = [1, 8, 32])]
fn layers(bencher: divan::Bencher<'_, '_>, layers: u32) {
    let shape = Shape::default().rounds(1).deltas(1_000).layers(layers);
    bencher
        .counter(ItemsCount::new(1_000_u32))
        .bench(|| run(&shape));
}

#[divan::bench(args = [1, 100, 1_000])]
fn at_once(runs: u32) {
    run(&Shape::default().at_once(runs));
}
