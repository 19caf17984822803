//! The fold, `normalise`, and the requests that are made of a growing history.

use divan::Bencher;
use raf_core::normalise;

fn main() {
    divan::main();
}

#[divan::bench(args = [10, 100, 1_000, 10_000])]
fn fold_of_deltas(deltas: u32) -> usize {
    raf_benches::fold(deltas)
}

#[divan::bench(args = [10, 100, 1_000, 5_000])]
fn normalise_of_messages(bencher: Bencher<'_, '_>, messages: u32) {
    let messages = raf_benches::history(messages);
    bencher.bench(|| normalise(&messages));
}

/// The first request of a conversation: each message is rendered.
#[divan::bench(args = [10, 100, 1_000, 5_000])]
fn request_rendered(bencher: Bencher<'_, '_>, messages: u32) {
    let client = raf_benches::request_client();
    bencher
        .with_inputs(|| raf_benches::history(messages))
        .bench_refs(|messages| raf_benches::request_body(&client, messages));
}

/// Each later one: what was rendered is taken as it is.
#[divan::bench(args = [10, 100, 1_000, 5_000])]
fn request_kept(bencher: Bencher<'_, '_>, messages: u32) {
    let client = raf_benches::request_client();
    let messages = raf_benches::history(messages);
    bencher.bench(|| raf_benches::request_body(&client, &messages));
}
