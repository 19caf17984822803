//! The in-memory stores hold the contract of stores.

use raf_core::{InMemoryRunStore, InMemorySessionStore};
use raf_testing::contract::InMemoryFixture;

const _: fn() -> (InMemoryRunStore, InMemorySessionStore) = Default::default;

raf_testing::run_store_contract!(in_memory_runs: InMemoryRunStore, InMemoryFixture::new(), skip: {
    i6_a_failed_write_in_the_middle_leaves_nothing => "a write to memory does not fail in the middle",
    a_later_format_is_refused_and_left_alone => "what it keeps has no text that could be replaced",
});

raf_testing::session_store_contract!(
    in_memory_sessions: InMemorySessionStore,
    InMemoryFixture::new()
);
