//! What holds in every run, checked over what it emitted, sent, ran and left behind.
//!
//! Each check returns what is wrong in words, nothing if all is well; [`assert_holds`] turns that
//! into a test's failure. Together they are V1 to V4 of raf's cases: pairing, one entry per call, no
//! gated body without a yes, order and one end.

mod calls;
mod entries;
mod history;
mod updates;

pub use entries::{check_entries, check_gated_entries};
pub use history::{check_prefixes, check_requests, check_transcript};
pub use updates::{check_partial_updates, check_reply_updates, check_updates};

/// Fails with everything that is wrong.
///
/// # Panics
/// If there is a fault.
#[track_caller]
pub fn assert_holds(faults: impl IntoIterator<Item = String>) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(
        faults.is_empty(),
        "an invariant is broken:\n- {}",
        faults.join("\n- ")
    );
}

#[cfg(test)]
mod tests;
