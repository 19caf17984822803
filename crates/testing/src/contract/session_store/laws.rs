//! The laws by name, for the macro and for harnesses of one's own.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::{ISessionStoreFixture, writers, writing};

/// A law: it panics if the store does not hold it.
pub type Law = fn(&dyn ISessionStoreFixture) -> BoxFuture<'_, ()>;

macro_rules! list {
    ($dollar:tt $($file:ident: [$($law:ident)*])*) => {
        /// All laws, by name.
        pub fn laws() -> Vec<(&'static str, Law)> {
            vec![$($((stringify!($law), (|fixture| Box::pin($file::$law(fixture))) as Law)),*),*]
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! __session_store_laws {
            ($dollar tests:path, $dollar suite:ident, $dollar make:expr) => {
                $dollar tests!($dollar suite, $dollar make, [$($($law)*)*]);
            };
        }
    };
}

list! { $
    writing: [
        a_session_comes_back_message_by_message
        i8_a_write_names_the_revision_that_it_is_based_on
        i8_of_two_writes_exactly_one_is_made
        what_was_written_is_there_when_opened_again
        a_session_is_forgotten
        sessions_expire_unless_they_are_leased
        a_trimmed_view_never_parts_a_call_from_its_result
        a_hundred_thousand_messages
    ]
    writers: [
        i8_one_holds_the_lease_and_others_are_refused
        i8_those_who_wait_come_in_order
        i8_a_turn_that_nobody_takes_goes_to_the_next
        i8_who_waits_elsewhere_gets_its_turn
        i8_a_lapsed_lease_gives_way_and_its_writer_cannot_write
    ]
}

/// Runs a law on a fixture.
#[doc(hidden)]
pub async fn run(name: &str, fixture: Arc<dyn ISessionStoreFixture>) {
    let laws = laws();
    let law = laws.iter().find(|(law, _)| *law == name);
    let (_, law) = law.expect("the macro names laws");
    law(&*fixture).await;
    fixture.clean().await;
}
