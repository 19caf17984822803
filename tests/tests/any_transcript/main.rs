//! Any transcript fits any provider: what a conversation holds that moved between them is written by the
//! rules of each protocol, for every known dialect; and such a conversation goes on, end to end.

mod across;
mod chat_completions;
mod draw;
// The check that stands with the provider: it too knows nothing of how requests are written.
#[path = "../../../crates/anthropic/tests/transcripts/rules.rs"]
mod messages;
mod responses;

use proptest::prelude::any;
use proptest::test_runner::TestCaseError;
use raf_anthropic::{AnthropicChatClient, AnthropicOptions};
use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, ErrorKind, MediaSource, MessageRole, Result,
    ToolDeclaration,
};
use raf_openai::{OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient, ResponsesDialect};
use raf_testing::random::for_all;
use serde_json::{Value, json};

use crate::draw::{MODEL, NAMES, transcripts};

/// How many transcripts are written, each for every provider and dialect.
const CASES: u32 = 128;

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Writes random transcripts for each of these dialects and holds the bodies against the rules.
fn check<C>(
    dialects: &'static [&'static str],
    client: impl Fn(&str) -> Result<C>,
    write: impl Fn(&C, &[ChatMessage], &ChatClientRunOptions) -> Result<String>,
    has_no_form: impl Fn(&Content, &str) -> bool,
    faults: impl Fn(&Value, &str) -> Vec<String>,
) {
    let clients: Vec<_> = dialects
        .iter()
        .map(|dialect| (*dialect, client(dialect).expect("options that work")))
        .collect();
    let strategy = (transcripts(), any::<bool>());
    for_all(CASES, &strategy, |(messages, has_tools)| {
        let mut options = ChatClientRunOptions::new();
        if has_tools {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            let tool = |name: &&str| ToolDeclaration::new(*name, "d").with_parameters(&schema);
            options.tools = NAMES.iter().map(tool).collect();
        }
        for (dialect, client) in &clients {
            let body = match write(client, &messages, &options) {
                Ok(body) => body,
                Err(error) => {
                    let is_known = has_unknown_media(&messages, |part| has_no_form(part, dialect));
                    if error.kind() == ErrorKind::Misuse && is_known {
                        continue;
                    }
                    return Err(TestCaseError::fail(format!("{dialect}: {error}")));
                }
            };
            let value: Value = serde_json::from_str(&body)
                .map_err(|error| TestCaseError::fail(format!("{dialect}: {error}: {body}")))?;
            let faults = faults(&value, dialect);
            if !faults.is_empty() {
                return Err(TestCaseError::fail(format!(
                    "{dialect}: {faults:#?}\n{value:#}"
                )));
            }
        }
        Ok(())
    });
}

/// Whether a part of the user is one that the protocol has no form for. One of a result is no reason to
/// refuse: the tool has run. Nor is one that a model made: it is not sent back.
fn has_unknown_media(messages: &[ChatMessage], is_it: impl Fn(&Content) -> bool) -> bool {
    let of_user = messages
        .iter()
        .filter(|message| message.role() != MessageRole::Assistant);
    of_user.flat_map(ChatMessage::contents).any(&is_it)
}

fn is_url(content: &Content) -> bool {
    match content {
        Content::Image(media) | Content::File(media) | Content::Audio(media) => {
            matches!(media.source, MediaSource::Url(_))
        }
        _ => false,
    }
}

#[test]
fn for_chat_completions() {
    let client = |dialect: &str| {
        let rules = raf_openai::Dialect::named(dialect).expect("it is known");
        OpenAiChatClient::new(OpenAiOptions::new().with_model(MODEL).with_dialect(rules))
    };
    let has_no_form = |part: &Content, _: &str| {
        is_url(part) && matches!(part, Content::Audio(_) | Content::File(_))
    };
    check(
        raf_openai::KNOWN_DIALECTS,
        client,
        OpenAiChatClient::request_body,
        has_no_form,
        chat_completions::faults,
    );
}

#[test]
fn for_responses() {
    let client = |dialect: &str| {
        let rules = ResponsesDialect::named(dialect).expect("it is known");
        let own = OpenAiOptions::new()
            .with_model(MODEL)
            .with_responses_dialect(rules);
        OpenAiResponsesChatClient::new(own)
    };
    let has_no_form = |part: &Content, _: &str| {
        is_url(part) && matches!(part, Content::Audio(_)) || matches!(part, Content::Video(_))
    };
    check(
        raf_openai::KNOWN_RESPONSES_DIALECTS,
        client,
        OpenAiResponsesChatClient::request_body,
        has_no_form,
        responses::faults,
    );
}

#[test]
fn for_messages() {
    let client = |dialect: &str| {
        let rules = raf_anthropic::Dialect::named(dialect).expect("it is known");
        let own = AnthropicOptions::new()
            .with_model(MODEL)
            .with_dialect(rules);
        AnthropicChatClient::new(own)
    };
    let has_no_form = |part: &Content, dialect: &str| {
        matches!(part, Content::Audio(_) | Content::Video(_))
            || dialect == "bedrock" && is_url(part)
    };
    let faults = |body: &Value, dialect: &str| {
        messages::faults(
            body,
            &messages::Setting {
                dialect,
                model: MODEL,
            },
        )
    };
    check(
        raf_anthropic::KNOWN_DIALECTS,
        client,
        AnthropicChatClient::request_body,
        has_no_form,
        faults,
    );
}

#[test]
fn the_rules_of_messages_find_what_breaks_them() {
    messages::self_test();
}
