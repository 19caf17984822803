//! The laws by name, for the macro and for harnesses of one's own.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::{IRunStoreFixture, answers, claims, forms, journals, records};

/// A law: it panics if the store does not hold it.
pub type Law = fn(&dyn IRunStoreFixture) -> BoxFuture<'_, ()>;

macro_rules! list {
    ($dollar:tt $($file:ident: [$($law:ident)*])*) => {
        /// All laws, by name.
        pub fn laws() -> Vec<(&'static str, Law)> {
            vec![$($((stringify!($law), (|fixture| Box::pin($file::$law(fixture))) as Law)),*),*]
        }

        #[doc(hidden)]
        #[macro_export]
        macro_rules! __run_store_laws {
            ($dollar tests:path, $dollar suite:ident, $dollar make:expr) => {
                $dollar tests!($dollar suite, $dollar make, [$($($law)*)*]);
            };
        }
    };
}

list! { $
    records: [
        a_record_comes_back_as_it_was
        what_is_missing_is_none
        e2_a_write_is_made_once_for_a_revision
        i8_of_two_writers_exactly_one_wins
        i8_who_closes_a_run_names_its_present_revision
        what_was_written_is_there_when_opened_again
        i2_a_run_is_closed_as_expired_and_then_gone
        i2_a_run_that_is_gone_is_not_created_again
        e8_what_nobody_can_answer_any_more_is_expired
        open_runs_are_listed_oldest_first
        e9_rules_are_remembered_once
    ]
    claims: [
        i8_one_claim_at_a_time
        i8_a_dropped_claim_gives_way_at_once
        i8_a_claim_lapses_without_a_sign_of_life
        i8_a_stalled_writer_that_comes_back_cannot_write
        i8_of_many_claims_exactly_one_holds
        runs_with_something_to_do_are_listed_oldest_first
    ]
    journals: [
        i6_a_journal_grows_in_order
        i6_an_append_names_its_base
        i6_the_last_append_made_again_is_the_same
        i6_entries_and_record_are_written_together_or_not_at_all
        i6_journals_are_kept_apart
        i6_a_failed_write_in_the_middle_leaves_nothing
        i6_a_journal_goes_with_its_run
        i6_a_hundred_thousand_entries
    ]
    answers: [
        e2_the_first_answer_wins
        e2_of_a_hundred_deciders_one_wins
        e3_answers_that_do_not_fit_are_refused
        e8_an_answer_goes_when_its_request_is_settled
        e8_a_refused_answer_makes_room
        e8_what_waits_is_listed_with_who_and_when
    ]
    forms: [
        unknown_members_survive
        a_later_format_is_refused_and_left_alone
        numbers_and_texts_are_exact
    ]
}

/// Runs a law on a fixture.
#[doc(hidden)]
pub async fn run(name: &str, fixture: Arc<dyn IRunStoreFixture>) {
    let laws = laws();
    let law = laws.iter().find(|(law, _)| *law == name);
    let (_, law) = law.expect("the macro names laws");
    law(&*fixture).await;
    fixture.clean().await;
}
