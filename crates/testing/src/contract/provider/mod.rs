//! Laws of a provider, held against the loopback server over real HTTP.

mod failing;
mod manners;
mod reading;

use std::sync::Arc;

use raf_core::{
    AgentResponse, ChatClientRunOptions, ChatMessage, IChatClient, Result, UpdateStream, collect,
};

use crate::reply::Reply;
use crate::{EndpointWire, ScriptedEndpoint};

pub use failing::{
    a_body_that_is_not_json_maps_to_a_kind, a_cut_stream_is_an_error,
    a_refused_connection_is_an_error_that_says_so, a_stream_without_its_end_is_an_error,
    an_error_within_the_stream_is_the_last_item, statuses_map_to_kinds,
};
pub use manners::{
    dropping_the_stream_closes_the_connection, metadata_names_the_provider,
    no_key_in_debug_or_errors, none_after_the_end_for_ever, nothing_is_sent_before_the_first_poll,
    resume_data_is_refused, the_request_carries_key_messages_and_options,
};
pub use reading::{
    a_call_in_one_piece, a_call_in_pieces, a_call_without_arguments, an_empty_reply_ends_well,
    finish_reasons_are_told_apart, parallel_calls_are_kept_apart, text_arrives_in_every_split,
    text_streams_as_it_arrives, unknown_fields_are_ignored, usage_comes_last_or_not_at_all,
};

/// The key that the provider under test must be given: the laws look where it turns up.
pub const KEY: &str = "sk-contract-0123456789abcdef";

/// A provider under test: how it is made from a base URL, and its type's name.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The name of the implementing type.
    pub name: &'static str,
    /// Which protocol it speaks.
    pub wire: EndpointWire,
    /// Makes a provider with the key [`KEY`] and any model.
    pub make: fn(&str) -> Arc<dyn IChatClient>,
}

/// The splits that each reply is read in: one byte, seven bytes, as written.
const SPLITS: [Option<usize>; 3] = [Some(1), Some(7), None];

fn endpoint(
    subject: &Subject,
    replies: impl IntoIterator<Item = Reply>,
    split: Option<usize>,
) -> ScriptedEndpoint {
    match split {
        Some(bytes) => ScriptedEndpoint::speaking_in_pieces(subject.wire, replies, bytes),
        None => ScriptedEndpoint::speaking(subject.wire, replies),
    }
}

fn question() -> Vec<ChatMessage> {
    vec![ChatMessage::user("question-text")]
}

async fn stream(subject: &Subject, base_url: &str) -> UpdateStream {
    let client = (subject.make)(base_url);
    let stream = client.run(&question(), ChatClientRunOptions::new()).await;
    stream.expect("a good request is not refused")
}

async fn respond(subject: &Subject, base_url: &str) -> Result<AgentResponse> {
    collect(stream(subject, base_url).await).await
}

/// Makes a module of tests that a provider holds its contract, one per law.
///
/// Names the module, the implementing type, and how a provider is made from a base URL (`&str`,
/// ending in `/v1`) with the key [`contract::provider::KEY`](crate::contract::provider::KEY) and
/// any model; `wire` names the [`EndpointWire`](crate::EndpointWire) that it speaks, Chat Completions
/// where it is left out; `skip` leaves laws out with a reason. See [`contract`](crate::contract).
///
/// ```ignore
/// raf_testing::provider_contract!(openai: OpenAiChatClient, |base_url| {
///     OpenAiChatClient::new(base_url, raf_testing::contract::provider::KEY)
/// });
/// ```
#[macro_export]
macro_rules! provider_contract {
    (
        $module:ident : $type:ident, $make:expr
        $(, wire: $wire:ident)?
        $(, skip: { $($law:ident => $reason:literal),* $(,)? })? $(,)?
    ) => {
        mod $module {
            #[allow(unused_imports, reason = "what the expressions name is not known here")]
            use super::*;

            const SUBJECT: $crate::contract::provider::Subject =
                $crate::contract::provider::Subject {
                    name: stringify!($type),
                    wire: $crate::__endpoint_wire!($($wire)?),
                    make: |base_url| ::std::sync::Arc::new(($make)(base_url)),
                };
            const SKIPPED: &[(&str, &str)] = &[$($((stringify!($law), $reason)),*)?];

            $crate::__contract_laws!(provider, run_real, SUBJECT, SKIPPED, [
                text_arrives_in_every_split
                text_streams_as_it_arrives
                a_call_in_one_piece
                a_call_in_pieces
                a_call_without_arguments
                parallel_calls_are_kept_apart
                usage_comes_last_or_not_at_all
                finish_reasons_are_told_apart
                an_empty_reply_ends_well
                unknown_fields_are_ignored
                an_error_within_the_stream_is_the_last_item
                a_cut_stream_is_an_error
                a_stream_without_its_end_is_an_error
                statuses_map_to_kinds
                a_body_that_is_not_json_maps_to_a_kind
                a_refused_connection_is_an_error_that_says_so
                the_request_carries_key_messages_and_options
                no_key_in_debug_or_errors
                nothing_is_sent_before_the_first_poll
                dropping_the_stream_closes_the_connection
                none_after_the_end_for_ever
                resume_data_is_refused
                metadata_names_the_provider
            ]);
        }
    };
}

/// The protocol that `provider_contract!` was given.
#[doc(hidden)]
#[macro_export]
macro_rules! __endpoint_wire {
    () => {
        $crate::EndpointWire::ChatCompletions
    };
    ($wire:ident) => {
        $crate::EndpointWire::$wire
    };
}
