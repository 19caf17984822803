//! Any transcript fits any provider: what a conversation holds that moved between them is written by the
//! rules of each protocol, for every known dialect; and such a conversation goes on, end to end.

mod across;
mod chat_completions;
mod draw;
// The check that stands with the provider: it too knows nothing of how requests are written.
#[path = "../../../crates/anthropic/tests/transcripts/rules.rs"]
mod messages;
mod responses;

use proptest::sample::select;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use raf_anthropic::{AnthropicChatClient, AnthropicOptions};
use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, ErrorKind, MediaSource, Result, ToolDeclaration,
};
use raf_openai::{OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient, ResponsesDialect};
use serde_json::{Value, json};

use crate::draw::{MODEL, NAMES, transcripts};

/// How many transcripts are written, each for every provider and dialect: `RAF_PROPERTY_CASES`, else this.
const CASES: u32 = 32;

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn config() -> Config {
    let cases = std::env::var("RAF_PROPERTY_CASES").ok();
    Config {
        cases: cases.and_then(|text| text.parse().ok()).unwrap_or(CASES),
        failure_persistence: None,
        max_shrink_iters: 4096,
        ..Config::default()
    }
}

/// Writes random transcripts for each of these dialects and holds the bodies against the rules.
fn check(
    dialects: &'static [&'static str],
    write: impl Fn(&str, &[ChatMessage], &ChatClientRunOptions) -> Result<String>,
    has_no_form: impl Fn(&Content, &str) -> bool,
    faults: impl Fn(&Value, &str) -> Vec<String>,
) {
    let strategy = (transcripts(), select(&[true, false][..]));
    let checked = TestRunner::new(config()).run(&strategy, |(messages, has_tools)| {
        let mut options = ChatClientRunOptions::new();
        if has_tools {
            let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
            let tool = |name: &&str| ToolDeclaration::new(*name, "d").with_parameters(&schema);
            options.tools = NAMES.iter().map(tool).collect();
        }
        for dialect in dialects {
            let body = match write(dialect, &messages, &options) {
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
    if let Err(error) = checked {
        panic!("{error}");
    }
}

/// Whether a part of the user is one that the protocol has no form for. One of a result is no reason to
/// refuse: the tool has run.
fn has_unknown_media(messages: &[ChatMessage], is_it: impl Fn(&Content) -> bool) -> bool {
    messages.iter().flat_map(ChatMessage::contents).any(&is_it)
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
    let write = |dialect: &str, messages: &[ChatMessage], options: &ChatClientRunOptions| {
        let rules = raf_openai::Dialect::named(dialect).expect("it is known");
        let own = OpenAiOptions::new().with_model(MODEL).with_dialect(rules);
        OpenAiChatClient::new(own)?.request_body(messages, options)
    };
    let has_no_form = |part: &Content, _: &str| {
        is_url(part) && matches!(part, Content::Audio(_) | Content::File(_))
    };
    check(
        raf_openai::KNOWN_DIALECTS,
        write,
        has_no_form,
        chat_completions::faults,
    );
}

#[test]
fn for_responses() {
    let write = |dialect: &str, messages: &[ChatMessage], options: &ChatClientRunOptions| {
        let rules = ResponsesDialect::named(dialect).expect("it is known");
        let own = OpenAiOptions::new()
            .with_model(MODEL)
            .with_responses_dialect(rules);
        OpenAiResponsesChatClient::new(own)?.request_body(messages, options)
    };
    let has_no_form = |part: &Content, _: &str| {
        is_url(part) && matches!(part, Content::Audio(_)) || matches!(part, Content::Video(_))
    };
    check(
        raf_openai::KNOWN_RESPONSES_DIALECTS,
        write,
        has_no_form,
        responses::faults,
    );
}

#[test]
fn for_messages() {
    let write = |dialect: &str, messages: &[ChatMessage], options: &ChatClientRunOptions| {
        let rules = raf_anthropic::Dialect::named(dialect).expect("it is known");
        let own = AnthropicOptions::new()
            .with_model(MODEL)
            .with_dialect(rules);
        AnthropicChatClient::new(own)?.request_body(messages, options)
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
    check(raf_anthropic::KNOWN_DIALECTS, write, has_no_form, faults);
}

#[test]
fn the_rules_of_messages_find_what_breaks_them() {
    messages::self_test();
}
