//! Any transcript fits: random conversations of the loop, begun with whatever provider, are written by
//! the rules of the API, for every dialect.

#[path = "transcripts/rules.rs"]
mod rules;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use raf_anthropic::{
    AnthropicChatClient, AnthropicOptions, AnthropicRunOptions, AnthropicRunOptionsExt,
    CacheLifetime, Conflicts, Dialect, KNOWN_DIALECTS, PromptCaching, Thinking,
};
use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, MediaContent, MessageRole, ProviderData,
    ReasoningContent, ReasoningEffort, RefusalContent, TextContent, ToolCall, ToolChoice,
    ToolDeclaration, ToolErrorClass, ToolOutcome, ToolResult,
};
use raf_wire::{Json, provider_part};
use rules::{Setting, faults};
use serde_json::{Value, json};

/// Ids of calls as providers make them: repeated, empty, in letters that this API does not take.
const IDS: &[&str] = &[
    "toolu_1", "call_0", "call_0", "", "a b", "fc:1|x", "ü", "-_9",
];

const NAMES: &[&str] = &[
    "look",
    "files.read",
    "ünïcode/tool",
    "a_very_long_name_that_goes_on_and_on_and_on_and_on_and_on_and_on_beyond_64",
];

const ARGUMENTS: &[&str] = &[
    "{}",
    r#"{"a": 1, "b": [null, {"c": "\ud83c\udf89"}]}"#,
    "",
    "null",
    "[1]",
    "{city: Paris}",
    r#"{"cut": "#,
];

const TEXTS: &[&str] = &[
    "Hello",
    " \n",
    "",
    "ends in blanks \n ",
    "\"cache_control\": {\"type\"",
    "🎉",
];

fn text() -> impl Strategy<Value = String> {
    select(TEXTS).prop_map(str::to_owned)
}

fn marked_text() -> impl Strategy<Value = Content> {
    (
        text(),
        select(&[None, None, None, Some("5m"), Some("1h")][..]),
    )
        .prop_map(|(text, ttl)| {
            let mut text = TextContent::new(text);
            if let Some(ttl) = ttl {
                let mark = json!({"type": "ephemeral", "ttl": ttl});
                text.extra.insert("cache_control".to_owned(), mark);
            }
            Content::Text(text)
        })
}

fn image() -> Content {
    Content::Image(MediaContent::base64("iVBORw0KGgo=", "image/png"))
}

/// Reasoning of this model, of another one, of another provider, of nobody.
fn reasoning() -> impl Strategy<Value = Content> {
    let owner = select(&[None, Some("anthropic"), Some("kimi"), Some("openai")][..]);
    let model = select(&["m", "claude-opus-4-7", "another"][..]);
    let member = select(&["signature", "data", "nothing"][..]);
    (text(), owner, model, member).prop_map(|(text, owner, model, member)| {
        let mut part = ReasoningContent::new(text);
        if let Some(owner) = owner {
            let secret = format!("{owner}/{model}");
            let data = json!({"model": model, member: secret});
            part = part.with_provider_data(ProviderData::new(owner, data));
        }
        Content::Reasoning(part)
    })
}

/// Parts that a provider made and that only it understands.
fn provider_parts() -> impl Strategy<Value = Content> {
    let part = select(
        &[
            r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":1}}"#,
            r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#,
            r#"{"type":"citations","citations":[{"type":"page_location"}]}"#,
            r#"{"type":"hologram","index":3,"data":1}"#,
            r#"{"type":"compaction","content":"Summary"}"#,
        ][..],
    );
    let owner = select(&["anthropic", "openai", "kimi"][..]);
    (owner, part).prop_map(|(owner, part)| provider_part(owner, &Json::parse(part).expect("JSON")))
}

fn call() -> impl Strategy<Value = Content> {
    (select(IDS), select(NAMES), select(ARGUMENTS), any::<bool>()).prop_map(
        |(id, name, arguments, complete)| {
            Content::ToolCall(
                ToolCall::builder(id, name, arguments)
                    .complete(complete)
                    .build(),
            )
        },
    )
}

fn assistant() -> impl Strategy<Value = ChatMessage> {
    let part = prop_oneof![
        marked_text(),
        reasoning(),
        provider_parts(),
        call(),
        call(),
        text().prop_map(|text| Content::Refusal(RefusalContent::new(text))),
        Just(image()),
    ];
    vec(part, 0..5).prop_map(|parts| ChatMessage::new(MessageRole::Assistant, parts))
}

fn result() -> impl Strategy<Value = ChatMessage> {
    let outcome = select(
        &[
            ToolOutcome::Ok,
            ToolOutcome::Denied,
            ToolOutcome::Error(ToolErrorClass::Failed),
            ToolOutcome::Cancelled { started: true },
        ][..],
    );
    let part = prop_oneof![
        text().prop_map(Content::text),
        Just(image()),
        Just(Content::Audio(MediaContent::base64("AA==", "audio/wav"))),
    ];
    (select(IDS), outcome, vec(part, 0..3)).prop_map(|(id, outcome, parts)| {
        ChatMessage::tool(ToolResult::builder(id, outcome).content(parts).build())
    })
}

fn user() -> impl Strategy<Value = ChatMessage> {
    let part = prop_oneof![marked_text(), Just(image())];
    vec(part, 0..3).prop_map(|parts| ChatMessage::new(MessageRole::User, parts))
}

fn system() -> impl Strategy<Value = ChatMessage> {
    let role = select(&[MessageRole::System, MessageRole::Developer][..]);
    (role, text()).prop_map(|(role, text)| ChatMessage::new(role, [Content::text(text)]))
}

fn transcript() -> impl Strategy<Value = Vec<ChatMessage>> {
    vec(
        prop_oneof![
            user(),
            assistant(),
            assistant(),
            result(),
            result(),
            system()
        ],
        1..12,
    )
}

fn options() -> impl Strategy<Value = ChatClientRunOptions> {
    let choice = prop_oneof![
        Just(ToolChoice::Auto),
        Just(ToolChoice::None),
        Just(ToolChoice::Required),
        select(NAMES).prop_map(|name| ToolChoice::Named(name.to_owned())),
    ];
    let thinking = prop_oneof![
        Just(Thinking::Disabled),
        Just(Thinking::Adaptive),
        select(&[1, 1024, 5000, 100_000][..]).prop_map(Thinking::Budget),
    ];
    let caching = (any::<bool>(), any::<bool>(), 0_u8..4, any::<bool>()).prop_map(
        |(tools, system, messages, long)| {
            let lifetime = if long {
                CacheLifetime::OneHour
            } else {
                CacheLifetime::FiveMinutes
            };
            PromptCaching::explicit()
                .with_tools(tools)
                .with_system(system)
                .with_messages(messages)
                .with_lifetime(lifetime)
        },
    );
    let effort = select(
        &[
            ReasoningEffort::None,
            ReasoningEffort::Low,
            ReasoningEffort::High,
        ][..],
    );
    let plain = (of(choice), of(any::<bool>()), any::<bool>(), of(effort));
    let sampling = (
        of(Just(0.5)),
        of(Just(0.9)),
        of(Just(5_u32)),
        of(select(&[10, 2000, 9000][..])),
    );
    (plain, sampling, of(thinking), of(caching)).prop_map(
        |(
            (choice, parallel, has_tools, effort),
            (temperature, top_p, top_k, most),
            thinking,
            caching,
        )| {
            let mut options = ChatClientRunOptions::new();
            let union = json!({"anyOf": [{"type": "object", "properties": {"a": {}}}]});
            if has_tools {
                let tool = |name: &&str| ToolDeclaration::new(*name, "d").with_parameters(&union);
                options.tools = NAMES.iter().map(tool).collect();
                options.tool_choice = choice;
            }
            options.parallel_tool_calls = parallel;
            options.reasoning_effort = effort;
            options.temperature = temperature;
            options.top_p = top_p;
            options.max_output_tokens = most;
            options.stop = vec!["\n".to_owned(), "END".to_owned()];
            let mut own = AnthropicRunOptions::new();
            (own.thinking, own.caching, own.top_k) = (thinking, caching, top_k);
            options.with_anthropic(own)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_transcript_is_written_by_the_rules(
        messages in transcript(),
        options in options(),
        dialect in select(KNOWN_DIALECTS),
        model in select(&["m", "claude-opus-4-7", "claude-sonnet-4-5"][..]),
        streaming in any::<bool>(),
    ) {
        let client = AnthropicOptions::new()
            .with_model(model)
            .with_dialect(Dialect::named(dialect).expect("a row"))
            .with_streaming(streaming)
            .with_conflicts(Conflicts::Adapt);
        let client = AnthropicChatClient::new(client).expect("options that work");
        let body = client.request_body(&messages, &options).expect("nothing of it is refused");
        let value: Value = serde_json::from_str(&body).expect("the body is JSON");
        let faults = faults(&value, &Setting { dialect, model });
        prop_assert!(faults.is_empty(), "{faults:#?}\n{value:#}");
        prop_assert!(!body.contains("raf_provider"));
        // What was kept with the messages gives the same once more.
        prop_assert_eq!(client.request_body(&messages, &options).expect("as before"), body);
    }
}

#[test]
fn the_rules_find_what_breaks_them() {
    rules::self_test();
}
