//! Contract suites: what every layer, provider and tool must hold, one `#[test]` per law.
//!
//! - [`decorator_contract!`](crate::decorator_contract): laws of a layer around another client.
//! - [`provider_contract!`](crate::provider_contract): laws of a provider, over real HTTP.
//! - [`tool_contract!`](crate::tool_contract): laws of a tool.
//! - [`run_store_contract!`](crate::run_store_contract): laws of a store of runs.
//! - [`session_store_contract!`](crate::session_store_contract): laws of a store of sessions.
//!
//! Each macro makes a module whose tests are named after the laws; a law that cannot hold for an
//! implementation is skipped with a written reason, which its test prints:
//!
//! ```
//! use raf_core::DelegatingChatClient;
//!
//! raf_testing::decorator_contract!(
//!     delegating: DelegatingChatClient,
//!     DelegatingChatClient::new,
//!     skip: { tool_calls_pass_unchanged => "for example: it runs them itself" }
//! );
//! # fn main() {}
//! ```
//!
//! # Is every implementation in a suite?
//! The name behind the colon is that of the implementing type. A test of a workspace can therefore
//! read the sources, gather the types of each `impl IChatClient for Type` and `impl ITool for Type`,
//! and look for `_contract!(` followed by `name: Type`.

pub mod decorator;
mod in_memory;
pub mod provider;
#[expect(clippy::unwrap_used, reason = "a law fails by a panic")]
pub mod run_store;
#[expect(clippy::unwrap_used, reason = "a law fails by a panic")]
pub mod session_store;
#[expect(clippy::unused_async, reason = "every law has the same form")]
pub mod tool;

use std::future::Future;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};

pub use in_memory::InMemoryFixture;

/// Runs a law on a current-thread runtime with a paused clock, unless it is skipped.
#[doc(hidden)]
pub fn run_paused<F: Future<Output = ()>>(
    law: &str,
    skipped: &[(&str, &str)],
    test: impl FnOnce() -> F,
) {
    run(
        Builder::new_current_thread()
            .enable_all()
            .start_paused(true),
        law,
        skipped,
        test,
    );
}

/// Runs a law on a current-thread runtime with a real clock, unless it is skipped.
#[doc(hidden)]
pub fn run_real<F: Future<Output = ()>>(
    law: &str,
    skipped: &[(&str, &str)],
    test: impl FnOnce() -> F,
) {
    run(
        Builder::new_current_thread().enable_all(),
        law,
        skipped,
        test,
    );
}

fn run<F: Future<Output = ()>>(
    builder: &mut Builder,
    law: &str,
    skipped: &[(&str, &str)],
    test: impl FnOnce() -> F,
) {
    if let Some((_, reason)) = skipped.iter().find(|(skipped, _)| *skipped == law) {
        assert!(
            !reason.trim().is_empty(),
            "the skip of {law} needs a reason"
        );
        skip_note(law, reason);
        return;
    }
    let runtime = builder.build().expect("a runtime can be made");
    runtime.block_on(async {
        let limit = tokio::time::sleep(Duration::from_mins(1));
        tokio::select! {
            biased;
            () = test() => {}
            () = limit => panic!("the law {law} was not decided within a minute"),
        }
    });
}

#[expect(
    clippy::print_stderr,
    reason = "the reason of a skip belongs in the test's output"
)]
fn skip_note(law: &str, reason: &str) {
    eprintln!("law {law} skipped: {reason}");
}

/// A skip that names no law is a mistake.
#[doc(hidden)]
pub fn check_skips(laws: &[&str], skipped: &[(&str, &str)]) {
    for (law, _) in skipped {
        assert!(
            laws.contains(law),
            "there is no law {law}; there are {laws:?}"
        );
    }
}

/// Fails if tasks outlived what they were for.
async fn assert_no_task_is_left() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let alive = Handle::current().metrics().num_alive_tasks();
    assert_eq!(alive, 0, "tasks outlive the drop");
}

/// One `#[test]` per law.
#[doc(hidden)]
#[macro_export]
macro_rules! __contract_laws {
    ($suite:ident, $run:ident, $subject:expr, $skipped:expr, [$($law:ident)*]) => {
        $(
            #[test]
            fn $law() {
                $crate::contract::$run(stringify!($law), $skipped, || {
                    $crate::contract::$suite::$law(&$subject)
                });
            }
        )*

        #[test]
        fn skips_name_laws() {
            $crate::contract::check_skips(&[$(stringify!($law)),*], $skipped);
        }
    };
}
