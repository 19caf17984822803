//! Any transcript fits: random conversations, begun with whatever provider, are written by the rules of
//! the Responses API, for every dialect, whether the server holds a part of them or not.

use std::collections::HashSet;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, MediaContent, MessageRole, MessageStatus,
    ProviderData, ReasoningContent, RefusalContent, Result, ToolCall, ToolDeclaration,
    ToolErrorClass, ToolOutcome, ToolResult,
};
use raf_openai::{
    KNOWN_RESPONSES_DIALECTS, OpenAiOptions, OpenAiResponsesChatClient, ResponsesDialect,
    ResponsesRunOptionsExt,
};
use raf_testing::random::for_all;
use raf_wire::{Json, provider_part};
use serde_json::{Value, json};

const IDS: &[&str] = &[
    "call_1",
    "call_0",
    "call_0",
    "",
    "fc:1|x",
    "an_id_of_a_call_that_is_longer_than_the_sixty_four_bytes_that_are_taken_here",
];

const NAMES: &[&str] = &["look", "files.read", "ünïcode/tool"];

const ARGUMENTS: &[&str] = &["{}", r#"{"a": [1, null]}"#, "", "null", "[1]", "{\"cut\": "];

const TEXTS: &[&str] = &["Hello", "", " \n", "\"type\":\"reasoning\"", "🎉"];

/// Whose opaque data it is: nobody's, another's, or each dialect's own.
fn owner() -> impl Strategy<Value = Option<&'static str>> {
    select(
        &[
            None,
            Some("anthropic"),
            Some("openai"),
            Some("openai"),
            Some("vllm"),
        ][..],
    )
}

fn place() -> impl Strategy<Value = Option<u64>> {
    of(0..6_u64)
}

fn reasoning() -> impl Strategy<Value = Content> {
    let encrypted = select(&["", "ENC"][..]);
    let model = select(&["m", "m", "another"][..]);
    (select(TEXTS), owner(), encrypted, model, place(), 0..3_u8).prop_map(
        |(text, owner, encrypted, model, place, number)| {
            let mut part = ReasoningContent::new(text);
            if let Some(owner) = owner {
                let item = json!({
                    "type": "reasoning",
                    "id": format!("rs_{number}"),
                    "encrypted_content": encrypted,
                });
                let data = json!({"item": item, "model": model, "raf_place": place});
                part = part.with_provider_data(ProviderData::new(owner, data));
            }
            Content::Reasoning(part)
        },
    )
}

fn call() -> impl Strategy<Value = Content> {
    let parts = (select(IDS), select(NAMES), select(ARGUMENTS));
    (parts, owner(), place(), any::<bool>(), 0..3_u8).prop_map(
        |((id, name, arguments), owner, place, is_custom, number)| {
            let mut call = ToolCall::builder(id, name, arguments);
            if let Some(owner) = owner {
                let item = if is_custom {
                    json!({
                        "type": "custom_tool_call",
                        "id": format!("ctc_{number}"),
                        "call_id": format!("call_{number}"),
                        "input": "ls",
                    })
                } else {
                    json!({"id": format!("fc_{number}"), "call_id": format!("call_{number}")})
                };
                let data = json!({"item": item, "raf_place": place});
                call = call.provider_data(ProviderData::new(owner, data));
            }
            Content::ToolCall(call.build())
        },
    )
}

fn opaque() -> impl Strategy<Value = Content> {
    let kinds = [
        "web_search_call",
        "message",
        "response",
        "local_shell_call",
        "server_tool_use",
    ];
    (select(kinds.to_vec()), owner(), place(), 0..3_u8).prop_map(|(kind, owner, place, number)| {
        let mut part = json!({"type": kind, "id": format!("msg_{number}"), "raf_place": place});
        if kind == "local_shell_call" {
            part["call_id"] = format!("sh_{number}").into();
            part["id"] = format!("lsh_{number}").into();
        }
        provider_part(owner.unwrap_or("openai"), &Json::from(&part))
    })
}

fn image() -> Content {
    Content::Image(MediaContent::base64("iVBORw0KGgo=", "image/png"))
}

fn said() -> impl Strategy<Value = Content> {
    prop_oneof![
        4 => select(TEXTS).prop_map(Content::text),
        1 => select(TEXTS).prop_map(|text| Content::Refusal(RefusalContent::new(text))),
        3 => reasoning(),
        3 => call(),
        2 => opaque(),
    ]
}

fn reply() -> impl Strategy<Value = ChatMessage> {
    let status = select(&[MessageStatus::Complete, MessageStatus::Incomplete][..]);
    (vec(said(), 0..6), status).prop_map(|(contents, status)| {
        ChatMessage::builder(MessageRole::Assistant)
            .contents(contents)
            .status(status)
            .build()
    })
}

fn result() -> impl Strategy<Value = ChatMessage> {
    let outcome = select(&[ToolOutcome::Ok, ToolOutcome::Error(ToolErrorClass::Failed)][..]);
    (select(IDS), outcome, select(TEXTS), any::<bool>()).prop_map(
        |(id, outcome, text, has_image)| {
            let mut contents = vec![Content::text(text)];
            contents.extend(has_image.then(image));
            let result = ToolResult::builder(id, outcome).content(contents);
            ChatMessage::tool(result.build())
        },
    )
}

fn message() -> impl Strategy<Value = ChatMessage> {
    prop_oneof![
        2 => select(TEXTS).prop_map(ChatMessage::user),
        1 => Just(ChatMessage::new(MessageRole::User, [Content::text("see"), image()])),
        1 => select(TEXTS).prop_map(ChatMessage::system),
        4 => reply(),
        3 => result(),
    ]
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name].as_str().unwrap_or("")
}

/// What a body breaks.
fn fault(body: &Value, dialect: &str) -> Option<String> {
    let is_local = !["openai", "azure", "codex", "xai", "openrouter", "litellm"].contains(&dialect);
    if body.to_string().contains("raf_") {
        return Some("a member of raf's own is sent".to_owned());
    }
    let items = body["input"].as_array()?;
    let mut ids = HashSet::new();
    let mut open: Vec<(String, String)> = Vec::new();
    let mut seen = HashSet::new();
    for (at, item) in items.iter().enumerate() {
        let kind = text(item, "type");
        let next = items.get(at + 1);
        if let Some(id) = item["id"].as_str()
            && !ids.insert(id.to_owned())
        {
            return Some(format!("the id {id} is there twice"));
        }
        match kind {
            "message" => {
                let is_assistant = text(item, "role") == "assistant";
                let parts = item["content"].as_array().cloned().unwrap_or_default();
                let fits = |part: &Value| match text(part, "type") {
                    "output_text" | "refusal" => is_assistant,
                    kind => kind.starts_with("input_") && !is_assistant,
                };
                if parts.is_empty() || !parts.iter().all(fits) {
                    return Some(format!("the parts of {item}"));
                }
            }
            "reasoning" => {
                let is_followed = next.is_some_and(|next| {
                    let kind = text(next, "type");
                    let is_said = kind == "message" && text(next, "role") == "assistant";
                    is_said || kind == "reasoning" || kind.ends_with("_call")
                });
                let is_opaque = !text(item, "encrypted_content").is_empty();
                if !item["summary"].is_array() || is_opaque == is_local {
                    return Some(format!("{item}"));
                }
                if !is_followed && dialect != "openrouter" {
                    return Some(format!("nothing follows {item}"));
                }
            }
            "function_call" | "custom_tool_call" | "local_shell_call" => {
                let id = text(item, "call_id");
                if id.is_empty() || id.len() > 64 || !seen.insert(id.to_owned()) {
                    return Some(format!("the call id of {item}"));
                }
                let arguments = serde_json::from_str::<Value>(text(item, "arguments"));
                if kind == "function_call" && !arguments.is_ok_and(|value| value.is_object()) {
                    return Some(format!("the arguments of {item}"));
                }
                open.push((id.to_owned(), format!("{kind}_output")));
            }
            kind if kind.ends_with("_output") => {
                let id = text(item, "call_id");
                let own = open
                    .iter()
                    .position(|(of, output)| of == id && output == kind);
                match own {
                    Some(own) => drop(open.remove(own)),
                    None if body["previous_response_id"].is_null() || seen.contains(id) => {
                        return Some(format!("an output without its call: {item}"));
                    }
                    None => {}
                }
                if is_local && dialect != "vllm" && !item["output"].is_string() {
                    return Some(format!("the output of {item}"));
                }
            }
            "web_search_call" | "server_tool_use" if !is_local => {}
            other => return Some(format!("an item of type '{other}'")),
        }
    }
    (!open.is_empty()).then(|| format!("calls without an output: {open:?}"))
}

fn client(dialect: &str) -> OpenAiResponsesChatClient {
    let options = OpenAiOptions::new()
        .with_model("m")
        .with_responses_dialect(ResponsesDialect::named(dialect).expect("it is known"));
    OpenAiResponsesChatClient::new(options).expect("options that work")
}

fn written(
    messages: &[ChatMessage],
    client: &OpenAiResponsesChatClient,
    run: &ChatClientRunOptions,
) -> Result<Value> {
    let body = client.request_body(messages, run)?;
    // A second look gives the same, whatever was kept.
    assert_eq!(client.request_body(messages, run)?, body);
    Ok(serde_json::from_str(&body).expect("a body is JSON"))
}

/// How many transcripts are written, each for every dialect.
const CASES: u32 = 256;

#[test]
fn any_transcript_is_written_by_the_rules() {
    let clients = KNOWN_RESPONSES_DIALECTS.iter();
    let clients: Vec<_> = clients.map(|name| (*name, client(name))).collect();
    let values = (vec(message(), 1..9), any::<bool>(), any::<bool>());
    for_all(CASES, &values, |(messages, keeps_state, has_tools)| {
        let mut run = ChatClientRunOptions::new().with_server_state(keeps_state);
        if has_tools {
            let tool = |name: &&str| ToolDeclaration::new(*name, "");
            run.tools = NAMES.iter().map(tool).collect();
        }
        for (dialect, client) in &clients {
            let body = written(&messages, client, &run)
                .map_err(|error| TestCaseError::fail(format!("{dialect}: {error}")))?;
            let fault = fault(&body, dialect);
            prop_assert!(
                fault.is_none(),
                "{}: {} in {}",
                dialect,
                fault.unwrap_or_default(),
                body
            );
        }
        Ok(())
    });
}

/// The API wants exactly one output for each call: a call that stands there twice goes back once.
#[test]
fn a_call_of_the_server_that_stands_twice_is_answered_once() {
    let call = json!({"type": "local_shell_call", "id": "lsh_1", "call_id": "sh_1"});
    let part = || provider_part("openai", &Json::from(&call));
    let reply = ChatMessage::new(MessageRole::Assistant, [part(), part()]);
    let messages = [ChatMessage::user("go"), reply];
    let body = written(&messages, &client("openai"), &ChatClientRunOptions::new()).expect("a body");
    assert_eq!(fault(&body, "openai"), None);
    let kinds = body["input"].as_array().expect("a list").iter();
    let kinds: Vec<&str> = kinds.map(|item| text(item, "type")).collect();
    assert_eq!(
        kinds,
        ["message", "local_shell_call", "local_shell_call_output"]
    );
}
