//! Random transcripts: what a loop leaves behind that changed its provider on the way, in order and out
//! of order.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use raf_core::{
    ChatMessage, Content, MediaContent, MediaSource, MessageRole, MessageStatus, ProviderData,
    ReasoningContent, RefusalContent, SkipReason, ToolCall, ToolErrorClass, ToolOutcome,
    ToolResult, UnknownContent,
};
use serde_json::{Value, json};

/// The model that is asked, and that made what goes back.
pub(crate) const MODEL: &str = "m";

/// Names of tools; the first are those that are declared.
pub(crate) const NAMES: &[&str] = &[
    "look",
    "files.read",
    "ünïcode/tool",
    "a_very_long_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_beyond_64",
];

/// Ids as servers make them: repeated, empty, too long, in letters that not all take.
const IDS: &[&str] = &[
    "call_1",
    "toolu_01",
    "call_0",
    "call_0",
    "",
    "fc:1|x",
    "ü",
    "an_id_of_a_call_that_is_longer_than_the_sixty_four_bytes_that_are_taken_here",
];

const ARGUMENTS: &[&str] = &[
    "{}",
    r#"{"a": [1, null], "b": {"c": "🎉"}}"#,
    "",
    "null",
    "[1]",
    "{city: Paris}",
    "{\"cut\": ",
];

const TEXTS: &[&str] = &[
    "Hello",
    "",
    " \n",
    "ends in blanks \n ",
    "\"role\":\"tool\"",
    "🎉",
];

/// The dialects whose parts a transcript holds, by the protocol that they speak.
const CHAT: &[&str] = &["openai", "openrouter", "gemini", "deepseek", "kimi"];
const RESPONSES: &[&str] = &[
    "openai",
    "azure",
    "openrouter",
    "litellm",
    "deepseek",
    "vllm",
];
const MESSAGES: &[&str] = &[
    "anthropic",
    "bedrock",
    "openrouter",
    "litellm",
    "deepseek",
    "kimi",
];

fn text() -> impl Strategy<Value = String> {
    select(TEXTS).prop_map(str::to_owned)
}

fn owned(dialect: &str, mut part: Value) -> Content {
    part["raf_provider"] = dialect.into();
    Content::Unknown(UnknownContent::new(part))
}

fn thought(text: &str, dialect: &str, data: Value) -> Content {
    Content::Reasoning(
        ReasoningContent::new(text).with_provider_data(ProviderData::new(dialect, data)),
    )
}

/// What a Chat Completions endpoint leaves in a message.
fn of_chat() -> impl Strategy<Value = Content> {
    (select(CHAT), text(), 0..2_u8).prop_map(|(dialect, text, kind)| {
        if kind == 0 {
            Content::Reasoning(ReasoningContent::new(text))
        } else {
            let details = json!([{"type": "reasoning.text", "text": "t", "signature": "s"}]);
            thought(&text, dialect, json!({"reasoning_details": details}))
        }
    })
}

/// What a Responses endpoint leaves in a message.
fn of_responses() -> impl Strategy<Value = Content> {
    let model = select(&[MODEL, "another"][..]);
    let encrypted = select(&["", "ENC"][..]);
    (
        select(RESPONSES),
        text(),
        model,
        encrypted,
        0..6_u8,
        0..1000_u16,
    )
        .prop_map(|(dialect, text, model, encrypted, kind, number)| {
            let marked = |mut part: Value| {
                part["raf_place"] = number.into();
                owned(dialect, part)
            };
            match kind {
                0 | 1 => {
                    let mut item =
                        json!({"type": "reasoning", "id": format!("rs_{number}"), "summary": []});
                    if !encrypted.is_empty() {
                        item["encrypted_content"] = encrypted.into();
                    }
                    let data = json!({"item": item, "raf_place": number, "model": model});
                    thought(&text, dialect, data)
                }
                2 => marked(json!({
                    "type": "web_search_call", "id": format!("ws_{number}"), "status": "completed",
                })),
                3 => marked(json!({
                    "type": "message", "id": format!("msg_{number}"), "role": "assistant",
                })),
                4 => marked(json!({
                    "type": "compaction", "id": format!("cmp_{number}"), "encrypted_content": "CMP",
                })),
                _ => owned(
                    dialect,
                    json!({"type": "response", "id": format!("resp_{number}")}),
                ),
            }
        })
}

/// What a Messages endpoint leaves in a message. A secret says whose it is.
fn of_messages() -> impl Strategy<Value = Content> {
    let model = select(&[MODEL, "another"][..]);
    (select(MESSAGES), text(), model, 0..7_u8, 0..1000_u16).prop_map(
        |(dialect, text, model, kind, number)| {
            let secret = format!("{dialect}/{model}");
            match kind {
                0 | 1 => thought(&text, dialect, json!({"model": model, "signature": secret})),
                2 => thought("", dialect, json!({"model": model, "data": secret})),
                3 => owned(dialect, json!({
                    "type": "server_tool_use", "id": format!("srvtoolu_{number}"),
                    "name": "web_search", "input": {"query": "x"},
                })),
                4 => owned(dialect, json!({
                    "type": "web_search_tool_result", "tool_use_id": format!("srvtoolu_{number}"),
                    "content": [],
                })),
                5 => owned(dialect, json!({"type": "compaction", "content": "Summary"})),
                _ => owned(dialect, json!({"type": "citations", "citations": [{"type": "page_location"}]})),
            }
        },
    )
}

fn call() -> impl Strategy<Value = Content> {
    let owner = prop_oneof![
        Just(None),
        select(CHAT).prop_map(|dialect| {
            Some((
                dialect,
                json!({"extra_content": {"google": {"thought_signature": "s"}}}),
            ))
        }),
        (select(RESPONSES), 0..1000_u16).prop_map(|(dialect, number)| {
            let item =
                json!({"id": format!("fc_{number}"), "call_id": "call_1", "status": "completed"});
            Some((dialect, json!({"item": item, "raf_place": number})))
        }),
        select(MESSAGES).prop_map(|dialect| Some((dialect, json!({"caller": {"type": "direct"}})))),
    ];
    let call = (select(IDS), select(NAMES), select(ARGUMENTS));
    (call, owner, any::<bool>()).prop_map(|((id, name, arguments), owner, complete)| {
        let mut call = ToolCall::builder(id, name, arguments).complete(complete);
        if let Some((dialect, data)) = owner {
            call = call.provider_data(ProviderData::new(dialect, data));
        }
        Content::ToolCall(call.build())
    })
}

fn image() -> Content {
    Content::Image(MediaContent::base64("iVBORw0KGgo=", "image/png"))
}

fn pdf() -> Content {
    Content::File(MediaContent::base64("JVBERi0=", "application/pdf").with_name("a.pdf"))
}

/// Media of which not every protocol knows each.
fn media() -> impl Strategy<Value = Content> {
    let url = "https://example.com/a";
    prop_oneof![
        4 => Just(image()),
        2 => Just(pdf()),
        1 => Just(Content::Image(MediaContent::url(url))),
        1 => Just(Content::Image(MediaContent::new(MediaSource::FileId("file_1".to_owned())))),
        1 => Just(Content::File(MediaContent::url(url))),
        1 => Just(Content::Audio(MediaContent::base64("AA==", "audio/wav"))),
        1 => Just(Content::Audio(MediaContent::url(url))),
        1 => Just(Content::Video(MediaContent::url(url))),
    ]
}

fn assistant() -> impl Strategy<Value = ChatMessage> {
    let part = prop_oneof![
        3 => text().prop_map(Content::text),
        1 => text().prop_map(|text| Content::Refusal(RefusalContent::new(text))),
        1 => of_chat(),
        2 => of_responses(),
        2 => of_messages(),
        4 => call(),
        1 => media(),
    ];
    let status = select(
        &[
            MessageStatus::Complete,
            MessageStatus::Complete,
            MessageStatus::Incomplete,
        ][..],
    );
    (vec(part, 0..6), status).prop_map(|(parts, status)| {
        ChatMessage::builder(MessageRole::Assistant)
            .contents(parts)
            .status(status)
            .build()
    })
}

/// How calls end whose body returned, failed, or was never entered.
const OUTCOMES: &[ToolOutcome] = &[
    ToolOutcome::Ok,
    ToolOutcome::Ok,
    ToolOutcome::Ok,
    ToolOutcome::Error(ToolErrorClass::Failed),
    ToolOutcome::Error(ToolErrorClass::UnknownTool),
    ToolOutcome::Error(ToolErrorClass::TimedOut { started: true }),
    ToolOutcome::Denied,
    ToolOutcome::Cancelled { started: false },
    ToolOutcome::Cancelled { started: true },
    ToolOutcome::skipped(SkipReason::Superseded),
    ToolOutcome::skipped(SkipReason::Truncated),
    ToolOutcome::Unknown,
];

fn outcome() -> impl Strategy<Value = ToolOutcome> {
    select(OUTCOMES)
}

/// What a result says: nothing, words, media, several of both; or what the loop fills in for a call that
/// was not run.
fn output() -> impl Strategy<Value = Vec<Content>> {
    let parts = vec(
        prop_oneof![3 => text().prop_map(Content::text), 2 => media()],
        0..4,
    );
    let filled = outcome().prop_map(|outcome| vec![Content::text(outcome.default_text())]);
    prop_oneof![4 => parts, 1 => filled]
}

fn result_of(id: &str, outcome: ToolOutcome, output: Vec<Content>) -> ChatMessage {
    ChatMessage::tool(ToolResult::builder(id, outcome).content(output).build())
}

/// One round as the loop leaves it: calls, and each one's result behind them. Some callers put all results
/// into one message; where a run waits, those of the calls that wait are missing.
fn round() -> impl Strategy<Value = Vec<ChatMessage>> {
    let shape = (any::<bool>(), 0..9_usize);
    (assistant(), vec((outcome(), output()), 6), shape).prop_map(|(reply, results, shape)| {
        let (in_one, waiting) = shape;
        let ids: Vec<String> = reply
            .tool_calls()
            .map(|call| call.id().to_owned())
            .collect();
        let results = ids.iter().zip(results).enumerate();
        let results = results.filter(|(place, _)| *place != waiting);
        let results: Vec<_> = results
            .map(|(_, (id, (outcome, output)))| result_of(id, outcome, output))
            .collect();
        if in_one && results.len() > 1 {
            let contents: Vec<Content> = results
                .iter()
                .flat_map(|message| message.contents().iter().cloned())
                .collect();
            return vec![reply, ChatMessage::new(MessageRole::Tool, contents)];
        }
        [vec![reply], results].concat()
    })
}

/// Several calls, each of which a tool answered with media: a protocol that takes none in a result must
/// not let them come between two results.
fn pictures() -> impl Strategy<Value = Vec<ChatMessage>> {
    let output = (text(), media()).prop_map(|(text, media)| vec![Content::text(text), media]);
    vec((call(), output), 2..4).prop_map(|pairs| {
        let calls = pairs.iter().map(|(call, _)| call.clone());
        let reply = ChatMessage::new(MessageRole::Assistant, calls);
        let results: Vec<_> = pairs
            .into_iter()
            .filter_map(|(call, output)| {
                let id = call.as_tool_call()?.id().to_owned();
                Some(result_of(&id, ToolOutcome::Ok, output))
            })
            .collect();
        [vec![reply], results].concat()
    })
}

/// A result of whatever call: a caller's own cut of a history has such.
fn stray() -> impl Strategy<Value = Vec<ChatMessage>> {
    (select(IDS), outcome(), output())
        .prop_map(|(id, outcome, output)| vec![result_of(id, outcome, output)])
}

/// What a user said. A caller who quotes a reply, or tells one model what another one did, leaves parts in
/// it that only their provider understands.
fn user() -> impl Strategy<Value = Vec<ChatMessage>> {
    let part = prop_oneof![
        8 => text().prop_map(Content::text),
        3 => media(),
        1 => of_chat(),
        1 => of_responses(),
        1 => of_messages(),
    ];
    vec(part, 0..4).prop_map(|parts| vec![ChatMessage::new(MessageRole::User, parts)])
}

fn system() -> impl Strategy<Value = Vec<ChatMessage>> {
    let role = select(&[MessageRole::System, MessageRole::Developer][..]);
    (role, text()).prop_map(|(role, text)| vec![ChatMessage::new(role, [Content::text(text)])])
}

/// A transcript. Somebody said something: without a word there is nothing to ask.
pub(crate) fn transcripts() -> impl Strategy<Value = Vec<ChatMessage>> {
    let piece = prop_oneof![
        3 => user(),
        5 => round(),
        1 => assistant().prop_map(|reply| vec![reply]),
        1 => pictures(),
        1 => stray(),
        1 => system(),
    ];
    vec(piece, 1..7).prop_map(|pieces| {
        let begin = ChatMessage::user("Begin.");
        [vec![begin], pieces.concat()].concat()
    })
}
