//! Laws of a run store, for one of your own too: records, claims, journals, answers, forms, expiry.
//!
//! The laws work on handles that a [`IRunStoreFixture`] opens. Each law gets a fixture of its own.

mod answers;
mod claims;
mod forms;
mod journals;
mod laws;
mod records;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raf_core::{
    ApprovalRequest, CallRecord, CallStatus, ClaimOutcome, IRunStore, JournalEntry, JournalKey,
    JournalKind, Occurrence, RunClaim, RunId, RunRecord, ToolCall, WriteOutcome,
};
use serde_json::json;

#[doc(hidden)]
pub use laws::run;
pub use laws::{Law, laws};

/// How long the store under test must keep a run after its last write.
pub const LIFETIME: Duration = Duration::from_secs(1_000);
/// How long its claims must last without a sign of life, if they lapse; it gives none by itself.
pub const LEASE: Duration = Duration::from_secs(30);

/// A store under test: how its data is opened, and what else a test can do to it.
#[async_trait]
pub trait IRunStoreFixture: Send + Sync {
    /// Opens the data: each call gives a handle as another process would have it, where there can be
    /// one. Runs live for [`LIFETIME`], claims that lapse for [`LEASE`], without a heartbeat.
    async fn open(&self) -> Arc<dyn IRunStore>;

    /// Lets time pass on the store's clock, for all handles.
    fn pass(&self, time: Duration);

    /// Puts a text, of this format, in the place of a record that is kept; whether the store lets a test do so.
    async fn replace_record(&self, run_id: &RunId, json: &str, format: u32) -> bool {
        let _ = (run_id, json, format);
        false
    }

    /// Makes the next write of the journal entry at this place fail, after those before it were written
    /// in the same transaction; whether the store lets a test do so.
    async fn break_journal_at(&self, place: u64) -> bool {
        let _ = place;
        false
    }

    /// Takes [`break_journal_at`](Self::break_journal_at) back.
    async fn mend(&self) {}

    /// Removes what the test has left.
    async fn clean(&self) {}
}

/// A record of a run that waits for a person, and the request's id.
pub fn waiting(run: &str) -> (RunRecord, String) {
    let mut record = RunRecord::new(RunId::from(run));
    let id = add_request(&mut record, None);
    (record, id)
}

/// Adds a call that waits for a person, until a moment if one is given.
fn add_request(record: &mut RunRecord, until_ms: Option<u64>) -> String {
    let position = u32::try_from(record.calls.len()).unwrap_or_default();
    let call = ToolCall::new(format!("c{position}"), "send", r#"{"to":"Ada"}"#);
    let place = Occurrence::new(0, position);
    let arguments = json!({"to": "Ada"});
    let run_id = record.run_id.clone();
    let request = ApprovalRequest::new(run_id, place, &call, "send", arguments.clone())
        .with_asker(Some("clerk".to_owned()), record.session_id.clone())
        .with_times(1, until_ms);
    let id = request.request_id.clone();
    let request = Box::new(request);
    let status = CallStatus::AwaitingApproval { request };
    let call = CallRecord::new(position, call, arguments, status);
    record.calls.push(call);
    id
}

fn step(name: &str, value: u64) -> JournalEntry {
    JournalEntry::new(0, name, JournalKind::Step, json!({"n": value}))
}

fn steps(range: std::ops::Range<u64>) -> Vec<JournalEntry> {
    range.map(|n| step("round/0/model", n)).collect()
}

/// A run that is in flight, and the claim that holds it.
async fn in_flight(store: &dyn IRunStore, run: &str) -> (RunRecord, RunClaim, JournalKey) {
    let (mut record, _) = waiting(run);
    record.working = true;
    let claim = RunClaim::new();
    let key = JournalKey::root(record.run_id.clone());
    let begun = store
        .append(&key, &claim, 0, &steps(0..1), Some(&record))
        .await;
    assert_eq!(begun.unwrap(), WriteOutcome::Written(1));
    record.revision = 1;
    (record, claim, key)
}

fn is_claimed(outcome: &ClaimOutcome) -> bool {
    matches!(outcome, ClaimOutcome::Claimed(_))
}

/// Makes a module of tests that a run store holds its contract, one per law.
///
/// Names the module, the implementing type, and an expression for a fresh fixture
/// ([`IRunStoreFixture`](crate::contract::run_store::IRunStoreFixture)); `skip` leaves laws out with a
/// reason. See [`contract`](crate::contract).
///
/// ```
/// use raf_core::InMemoryRunStore;
/// use raf_testing::contract::InMemoryFixture;
///
/// raf_testing::run_store_contract!(in_memory: InMemoryRunStore, InMemoryFixture::new(), skip: {
///     i6_a_failed_write_in_the_middle_leaves_nothing => "memory does not fail in the middle",
///     a_later_format_is_refused_and_left_alone => "what it keeps has no text form"
/// });
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! run_store_contract {
    (
        $module:ident : $type:ident, $make:expr
        $(, skip: { $($law:ident => $reason:literal),* $(,)? })? $(,)?
    ) => {
        mod $module {
            #[allow(unused_imports, reason = "what the expressions name is not known here")]
            use super::*;

            const SKIPPED: &[(&str, &str)] = &[$($((stringify!($law), $reason)),*)?];

            $crate::__run_store_laws!($crate::__store_law_tests, run_store, $make);
        }
    };
}

/// One `#[test]` per law of a store.
#[doc(hidden)]
#[macro_export]
macro_rules! __store_law_tests {
    ($suite:ident, $make:expr, [$($law:ident)*]) => {
        $(
            #[test]
            fn $law() {
                $crate::contract::run_real(stringify!($law), SKIPPED, || async {
                    $crate::contract::$suite::run(stringify!($law), ::std::sync::Arc::new($make)).await;
                });
            }
        )*

        #[test]
        fn skips_name_laws() {
            $crate::contract::check_skips(&[$(stringify!($law)),*], SKIPPED);
        }
    };
}
