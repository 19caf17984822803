//! Laws of a layer: it changes what it is for, and nothing else.

mod flow;
mod passing;

use std::sync::Arc;

use raf_core::{AgentResponseUpdate, ChatMessage, IChatClient, ResponseFold, Result, UpdateStream};

pub use flow::{
    a_cut_stream_does_not_become_a_finish, an_error_keeps_kind_and_source_and_is_last,
    at_most_one_item_ahead, cancellation_reaches_the_inner_stream, concurrent_runs_do_not_mix,
    dropping_the_stream_drops_the_inner_stream, exactly_one_terminal_item,
    none_after_the_end_for_ever, nothing_is_sent_before_the_first_poll,
    updates_come_before_the_inner_stream_ends,
};
pub use passing::{
    a_refusal_at_the_start_is_kept, debug_shows_the_stack_and_no_text,
    messages_and_options_of_the_caller_are_unchanged, metadata_and_services_reach_the_innermost,
    resume_data_is_not_lost, streams_fold_to_the_response, tool_calls_pass_unchanged,
    unknown_content_passes_unchanged_in_order, usage_and_metadata_pass_unchanged,
};

/// A layer under test: how it is put around a client, and its type's name.
#[derive(Clone, Copy)]
pub struct Subject {
    /// The name of the implementing type.
    pub name: &'static str,
    /// Puts the layer around a client.
    pub wrap: fn(Arc<dyn IChatClient>) -> Arc<dyn IChatClient>,
}

impl std::fmt::Debug for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Subject {
    fn around(&self, inner: &crate::ScriptedChatClient) -> Arc<dyn IChatClient> {
        (self.wrap)(Arc::new(inner.clone()))
    }
}

fn question() -> Vec<ChatMessage> {
    vec![ChatMessage::user("question-text")]
}

/// What a stream comes to, an early end included; the error apart.
struct Read {
    items: Vec<Result<AgentResponseUpdate>>,
    fold: ResponseFold,
}

async fn read(mut stream: UpdateStream) -> Read {
    let mut read = Read {
        items: Vec::new(),
        fold: ResponseFold::new(),
    };
    while let Some(item) = futures::StreamExt::next(&mut stream).await {
        if let Ok(update) = &item {
            read.fold.push(update);
        }
        read.items.push(item);
    }
    read
}

/// Makes a module of tests that a layer holds its contract, one per law.
///
/// Names the module, the implementing type, and how to put the layer around an
/// `Arc<dyn IChatClient>`; `skip` leaves laws out with a reason. See
/// [`contract`](crate::contract).
#[macro_export]
macro_rules! decorator_contract {
    (
        $module:ident : $type:ident, $wrap:expr
        $(, skip: { $($law:ident => $reason:literal),* $(,)? })? $(,)?
    ) => {
        mod $module {
            #[allow(unused_imports, reason = "what the expressions name is not known here")]
            use super::*;

            const SUBJECT: $crate::contract::decorator::Subject =
                $crate::contract::decorator::Subject {
                    name: stringify!($type),
                    wrap: |inner| ::std::sync::Arc::new(($wrap)(inner)),
                };
            const SKIPPED: &[(&str, &str)] = &[$($((stringify!($law), $reason)),*)?];

            $crate::__contract_laws!(decorator, run_paused, SUBJECT, SKIPPED, [
                streams_fold_to_the_response
                updates_come_before_the_inner_stream_ends
                unknown_content_passes_unchanged_in_order
                tool_calls_pass_unchanged
                usage_and_metadata_pass_unchanged
                nothing_is_sent_before_the_first_poll
                at_most_one_item_ahead
                dropping_the_stream_drops_the_inner_stream
                cancellation_reaches_the_inner_stream
                an_error_keeps_kind_and_source_and_is_last
                a_refusal_at_the_start_is_kept
                a_cut_stream_does_not_become_a_finish
                exactly_one_terminal_item
                none_after_the_end_for_ever
                concurrent_runs_do_not_mix
                metadata_and_services_reach_the_innermost
                debug_shows_the_stack_and_no_text
                messages_and_options_of_the_caller_are_unchanged
                resume_data_is_not_lost
            ]);
        }
    };
}
