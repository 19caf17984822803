//! Laws of a session store, for one of your own too: one writer, turns in order, versions, expiry.

mod laws;
mod writers;
mod writing;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use raf_core::{ChatMessage, ISessionStore, SessionChange};

#[doc(hidden)]
pub use laws::run;
pub use laws::{Law, laws};

/// A store under test: how its data is opened, and what else a test can do to it.
#[async_trait]
pub trait ISessionStoreFixture: Send + Sync {
    /// Opens the data: each call gives a handle as another process would have it, where there can be
    /// one. Sessions live for [`LIFETIME`](super::run_store::LIFETIME), leases that lapse for
    /// [`LEASE`](super::run_store::LEASE), without a heartbeat.
    async fn open(&self) -> Arc<dyn ISessionStore>;

    /// Lets time pass on the store's clock, for all handles.
    fn pass(&self, time: Duration);

    /// Whether a lease lapses without a sign of life.
    fn leases_lapse(&self) -> bool {
        false
    }

    /// Removes what the test has left.
    async fn clean(&self) {}
}

fn says(text: &str) -> SessionChange {
    SessionChange::messages([ChatMessage::user(text)])
}

/// Makes a module of tests that a session store holds its contract, one per law.
///
/// Names the module, the implementing type, and an expression for a fresh fixture
/// ([`ISessionStoreFixture`](crate::contract::session_store::ISessionStoreFixture)); `skip` leaves laws
/// out with a reason. See [`contract`](crate::contract).
///
/// ```
/// use raf_core::InMemorySessionStore;
/// use raf_testing::contract::InMemoryFixture;
///
/// raf_testing::session_store_contract!(in_memory: InMemorySessionStore, InMemoryFixture::new());
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! session_store_contract {
    (
        $module:ident : $type:ident, $make:expr
        $(, skip: { $($law:ident => $reason:literal),* $(,)? })? $(,)?
    ) => {
        mod $module {
            #[allow(unused_imports, reason = "what the expressions name is not known here")]
            use super::*;

            const SKIPPED: &[(&str, &str)] = &[$($((stringify!($law), $reason)),*)?];

            $crate::__session_store_laws!($crate::__store_law_tests, session_store, $make);
        }
    };
}
