//! Requests as tables: what becomes of settings, media, tools, places and breakpoints.

use raf_anthropic::{
    AnthropicChatClient, AnthropicOptions, AnthropicRunOptions, AnthropicRunOptionsExt,
    CacheLifetime, Conflicts, Dialect, PromptCaching, SchemaSupport, Thinking,
};
use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, ErrorKind, JsonSchemaFormat, MediaContent,
    MediaSource, MessageRole, ProviderData, ReasoningContent, ReasoningEffort, ResponseFormat,
    Result, TextContent, ToolCall, ToolChoice, ToolDeclaration, ToolErrorClass, ToolOutcome,
    ToolResult,
};
use serde_json::{Value, json};

fn client(dialect: &str, conflicts: Conflicts) -> AnthropicChatClient {
    let options = AnthropicOptions::new()
        .with_model("claude-sonnet-4-5")
        .with_dialect(Dialect::named(dialect).expect("a row"))
        .with_conflicts(conflicts);
    AnthropicChatClient::new(options).expect("options that work")
}

fn try_body(
    dialect: &str,
    conflicts: Conflicts,
    messages: &[ChatMessage],
    options: &ChatClientRunOptions,
) -> Result<Value> {
    let body = client(dialect, conflicts).request_body(messages, options)?;
    Ok(serde_json::from_str(&body).expect("JSON"))
}

fn body(messages: &[ChatMessage], options: &ChatClientRunOptions) -> Value {
    try_body("anthropic", Conflicts::Refuse, messages, options).expect("a good request")
}

fn hello() -> Vec<ChatMessage> {
    vec![ChatMessage::user("Hello")]
}

fn plain() -> ChatClientRunOptions {
    ChatClientRunOptions::new()
}

fn thinking(thinking: Thinking) -> ChatClientRunOptions {
    plain().with_anthropic(AnthropicRunOptions::new().with_thinking(thinking))
}

fn caching(caching: PromptCaching) -> ChatClientRunOptions {
    plain().with_anthropic(AnthropicRunOptions::new().with_caching(caching))
}

fn tool(name: &str) -> ToolDeclaration {
    ToolDeclaration::new(name, "d")
}

/// A call, its result, and a question behind it.
fn called() -> Vec<ChatMessage> {
    vec![
        ChatMessage::user("Hello"),
        ChatMessage::assistant_calls([ToolCall::new("toolu_1", "look", r#"{"b":1,"a":2}"#)]),
        ChatMessage::tool(ToolResult::ok("toolu_1", "seen")),
    ]
}

#[test]
fn what_the_api_refuses_together_is_refused_with_what_to_change() {
    let forced = |options: ChatClientRunOptions| {
        options
            .with_tools([tool("look")])
            .with_tool_choice(ToolChoice::Required)
    };
    let budget = || thinking(Thinking::Budget(2048));
    let adaptive_model = || plain().with_model("claude-opus-4-7");
    let top_k = AnthropicRunOptions::new()
        .with_top_k(5)
        .with_thinking(Thinking::Budget(2048));
    for (name, options, words, given_way) in [
        (
            "forced call",
            forced(budget()),
            "ToolChoice::Auto",
            json!({"tool_choice": {"type": "auto"}}),
        ),
        (
            "temperature",
            budget().with_temperature(0.2),
            "temperature",
            json!({"temperature": null}),
        ),
        (
            "top_k",
            plain().with_anthropic(top_k),
            "top_k",
            json!({"top_k": null}),
        ),
        (
            "both",
            plain().with_temperature(0.2).with_top_p(0.4),
            "leave one out",
            json!({"temperature": 0.2, "top_p": null}),
        ),
        (
            "sampling",
            adaptive_model().with_temperature(0.2),
            "leave them out",
            json!({"temperature": null}),
        ),
        (
            "adaptive alone",
            adaptive_model()
                .with_anthropic(AnthropicRunOptions::new().with_thinking(Thinking::Budget(2048))),
            "Thinking::Adaptive",
            json!({"thinking": {"type": "adaptive"}}),
        ),
        (
            "small budget",
            thinking(Thinking::Budget(5)),
            "1024",
            json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ),
        (
            "large budget",
            thinking(Thinking::Budget(4096)).with_max_output_tokens(2000),
            "lower the budget",
            json!({"thinking": {"type": "enabled", "budget_tokens": 1999}, "max_tokens": 2000}),
        ),
        (
            "no room",
            thinking(Thinking::Budget(4096)).with_max_output_tokens(100),
            "raise the limit",
            json!({"thinking": {"type": "disabled"}, "max_tokens": 100}),
        ),
        (
            "blank stop",
            plain().with_stop(["\n", "END"]),
            "blanks",
            json!({"stop_sequences": ["END"]}),
        ),
    ] {
        let error = try_body("anthropic", Conflicts::Refuse, &hello(), &options);
        let error = error.expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Misuse, "{name}");
        assert!(error.message().contains(words), "{name}: {error}");
        let body = try_body("anthropic", Conflicts::Adapt, &hello(), &options).expect(name);
        for (member, wanted) in given_way.as_object().expect("an object") {
            assert_eq!(body.get(member).unwrap_or(&Value::Null), wanted, "{name}");
        }
    }
}

#[test]
fn numbers_that_are_none_and_forced_calls_without_tools_are_always_refused() {
    for options in [
        plain().with_temperature(f64::NAN),
        plain().with_top_p(f64::INFINITY),
        plain().with_tool_choice(ToolChoice::Required),
    ] {
        let error = try_body("anthropic", Conflicts::Adapt, &hello(), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
    }
    let two = [
        tool("look"),
        tool("look").with_parameters(&json!({"type": "object", "properties": {"a": {}}})),
    ];
    let options = plain().with_tools(two);
    let error = try_body("anthropic", Conflicts::Adapt, &hello(), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

#[test]
fn efforts_are_budgets_or_adaptive_thinking_as_the_model_wants_it() {
    for (model, effort, wanted, config, most) in [
        (
            "claude-sonnet-4-5",
            ReasoningEffort::Low,
            json!({"type": "enabled", "budget_tokens": 2048}),
            None,
            18_432,
        ),
        (
            "claude-sonnet-4-5",
            ReasoningEffort::None,
            json!({"type": "disabled"}),
            None,
            16_384,
        ),
        (
            "claude-opus-4-7",
            ReasoningEffort::High,
            json!({"type": "adaptive"}),
            Some("high"),
            16_384,
        ),
        (
            "claude-opus-4-7",
            ReasoningEffort::Minimal,
            json!({"type": "adaptive"}),
            Some("low"),
            16_384,
        ),
    ] {
        let options = plain().with_model(model).with_reasoning_effort(effort);
        let body = body(&hello(), &options);
        assert_eq!(body["thinking"], wanted);
        assert_eq!(body["output_config"]["effort"].as_str(), config);
        assert_eq!(body["max_tokens"], most);
    }
    // A rough word gives way to the limit.
    let options = plain()
        .with_reasoning_effort(ReasoningEffort::High)
        .with_max_output_tokens(2000);
    assert_eq!(body(&hello(), &options)["thinking"]["budget_tokens"], 1999);
    let options = options.with_max_output_tokens(500);
    assert!(body(&hello(), &options).get("thinking").is_none());
}

#[test]
fn the_limit_of_tokens_is_always_sent() {
    for (model, most) in [
        ("claude-sonnet-4-5", 16_384),
        ("claude-3-5-haiku-20241022", 8192),
        ("claude-3-opus", 4096),
        ("somebody", 4096),
    ] {
        let options = plain().with_model(model);
        assert_eq!(body(&hello(), &options)["max_tokens"], most, "{model}");
    }
    let options = plain().with_max_output_tokens(7);
    assert_eq!(body(&hello(), &options)["max_tokens"], 7);
}

#[test]
fn a_turn_without_a_thought_of_this_model_is_not_thought_on() {
    let options = thinking(Thinking::Budget(2048)).with_tools([tool("look")]);
    let sent = |data: Option<Value>| {
        let mut messages = called();
        if let Some(data) = data {
            let thought = ReasoningContent::new("Hm")
                .with_provider_data(ProviderData::new("anthropic", data));
            let mut parts = vec![Content::Reasoning(thought)];
            parts.extend(messages[1].contents().to_vec());
            messages[1] = messages[1].to_builder().replace_contents(parts).build();
        }
        body(&messages, &options)
    };
    let own = json!({"model": "claude-sonnet-4-5", "signature": "sig"});
    let with_own = sent(Some(own));
    assert_eq!(with_own["thinking"]["type"], "enabled");
    let block = json!({"type": "thinking", "thinking": "Hm", "signature": "sig"});
    assert_eq!(with_own["messages"][1]["content"][0], block);
    for foreign in [
        None,
        Some(json!({"model": "another", "signature": "sig"})),
        Some(json!({"model": "claude-sonnet-4-5"})),
    ] {
        let without = sent(foreign);
        assert_eq!(without["thinking"], json!({"type": "disabled"}));
        assert_eq!(without["messages"][1]["content"][0]["type"], "tool_use");
    }
}

#[test]
fn automatic_breakpoints_stand_where_they_save_the_most() {
    let mut messages = vec![ChatMessage::system("Be kind.")];
    messages.extend(called());
    let options = caching(PromptCaching::automatic()).with_tools([tool("look"), tool("see")]);
    let sent = body(&messages, &options);
    let mark = json!({"type": "ephemeral"});
    assert_eq!(sent["tools"][1]["cache_control"], mark);
    assert!(sent["tools"][0].get("cache_control").is_none());
    assert_eq!(sent["system"][0]["cache_control"], mark);
    assert_eq!(sent["messages"][0]["content"][0]["cache_control"], mark);
    assert_eq!(sent["messages"][2]["content"][0]["cache_control"], mark);
    let none = body(&messages, &plain().with_tools([tool("look")]));
    assert!(!none.to_string().contains("cache_control"));
}

fn marked(text: &str, lifetime: &str) -> Content {
    let mut text = TextContent::new(text);
    let mark = json!({"type": "ephemeral", "ttl": lifetime});
    text.extra.insert("cache_control".to_owned(), mark);
    Content::Text(text)
}

fn lifetimes(body: &Value) -> Vec<String> {
    let text = body.to_string();
    let marks = text.split(r#""cache_control":"#).skip(1);
    marks
        .map(|rest| {
            if rest.starts_with(r#"{"ttl":"1h""#)
                || rest.starts_with(r#"{"type":"ephemeral","ttl":"1h""#)
            {
                "1h"
            } else {
                "5m"
            }
            .to_owned()
        })
        .collect()
}

#[test]
fn explicit_breakpoints_count_first_and_never_are_more_than_four() {
    let many = |count: usize| {
        let parts = (0..count).map(|place| marked(&format!("part {place}"), "5m"));
        vec![
            ChatMessage::system("s"),
            ChatMessage::new(MessageRole::User, parts),
        ]
    };
    let automatic = caching(PromptCaching::automatic());
    assert_eq!(lifetimes(&body(&many(3), &automatic)).len(), 4);
    assert_eq!(lifetimes(&body(&many(4), &automatic)).len(), 4);
    let error = try_body("anthropic", Conflicts::Adapt, &many(5), &automatic).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("5 cache breakpoints"), "{error}");
}

#[test]
fn an_hour_never_stands_behind_five_minutes() {
    let messages = [
        ChatMessage::system("s"),
        ChatMessage::new(MessageRole::User, [marked("a", "5m"), marked("b", "1h")]),
        ChatMessage::assistant("c"),
        ChatMessage::new(MessageRole::User, [marked("d", "5m")]),
    ];
    let options = caching(PromptCaching::explicit().with_system(true));
    let body = body(&messages, &options);
    let marks = [
        &body["system"][0],
        &body["messages"][0]["content"][0],
        &body["messages"][0]["content"][1],
        &body["messages"][2]["content"][0],
    ];
    let lifetimes = marks.map(|block| block["cache_control"]["ttl"] == "1h");
    assert_eq!(lifetimes, [true, true, true, false]);
    let hour = PromptCaching::automatic().with_lifetime(CacheLifetime::OneHour);
    let options = caching(hour).with_tools([tool("look")]);
    let sent = body_text(&called(), &options);
    assert_eq!(sent.matches(r#""ttl":"1h""#).count(), 3);
}

fn body_text(messages: &[ChatMessage], options: &ChatClientRunOptions) -> String {
    client("anthropic", Conflicts::Refuse)
        .request_body(messages, options)
        .expect("a good request")
}

#[test]
fn media_have_their_forms() {
    let pdf = MediaContent::base64("JVBERi0=", "application/pdf").with_name("a.pdf");
    let text = MediaContent::base64("SGVsbG8=", "text/plain; charset=utf-8");
    let parts = [
        Content::Image(MediaContent::base64("iVBORw0KGgo=", "image/jpeg")),
        Content::Image(MediaContent::url("data:image/png;base64,iVBORw0KGgo=")),
        Content::Image(MediaContent::url("https://example.com/a.png")),
        Content::File(pdf),
        Content::File(text),
        Content::File(MediaContent::url("https://example.com/a.pdf")),
        Content::File(MediaContent::new(MediaSource::FileId("file_1".to_owned()))),
    ];
    let sent = body(&[ChatMessage::new(MessageRole::User, parts)], &plain());
    let png = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let wanted = json!([
        png,
        png,
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}, "title": "a.pdf"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hello"}},
        {"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}},
        {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
    ]);
    assert_eq!(sent["messages"][0]["content"], wanted);
}

#[test]
fn media_that_the_api_does_not_take_are_refused_with_what_to_give() {
    for (dialect, part, words) in [
        (
            "anthropic",
            Content::Audio(MediaContent::base64("AA==", "audio/wav")),
            "transcript",
        ),
        (
            "anthropic",
            Content::Video(MediaContent::url("https://example.com/v.mp4")),
            "images",
        ),
        (
            "anthropic",
            Content::Image(MediaContent::base64("AAAA", "image/bmp")),
            "convert",
        ),
        (
            "anthropic",
            Content::File(MediaContent::base64("AAAA", "application/zip")),
            "PDF",
        ),
        (
            "bedrock",
            Content::Image(MediaContent::url("https://example.com/a.png")),
            "base64",
        ),
    ] {
        let messages = [ChatMessage::new(MessageRole::User, [part])];
        let error = try_body(dialect, Conflicts::Refuse, &messages, &plain()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn results_hold_what_they_can_and_say_what_is_left_out() {
    let png = || Content::Image(MediaContent::base64("iVBORw0KGgo=", "image/png"));
    let sound = Content::Audio(MediaContent::base64("AA==", "audio/wav"));
    let block = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}});
    let failed = ToolOutcome::Error(ToolErrorClass::Failed);
    for (outcome, parts, wanted, is_error) in [
        (ToolOutcome::Ok, vec![], json!("(no output)"), false),
        (
            ToolOutcome::Ok,
            vec![Content::text("a"), png()],
            json!([{"type": "text", "text": "a"}, block]),
            false,
        ),
        (
            ToolOutcome::Ok,
            vec![sound],
            json!("(sound is left out)"),
            false,
        ),
        (
            failed,
            vec![Content::text("a"), png()],
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "(an image is left out)"}]),
            true,
        ),
        (failed, vec![], json!("The tool failed."), true),
        (
            ToolOutcome::Denied,
            vec![Content::text("no")],
            json!("no"),
            false,
        ),
        (
            ToolOutcome::Cancelled { started: true },
            vec![Content::text("no")],
            json!("no"),
            true,
        ),
    ] {
        let mut messages = called();
        let result = ToolResult::builder("toolu_1", outcome).content(parts);
        messages[2] = ChatMessage::tool(result.build());
        let sent = body(&messages, &plain());
        let result = &sent["messages"][2]["content"][0];
        assert_eq!(result["content"], wanted);
        assert_eq!(result["is_error"] == true, is_error);
    }
}

#[test]
fn tools_stay_declared_while_the_history_has_calls() {
    let sent = body(&called(), &plain());
    assert_eq!(sent["tools"][0]["name"], "look");
    assert_eq!(sent["tool_choice"], json!({"type": "none"}));
    let old = try_body("kimi", Conflicts::Refuse, &called(), &plain()).unwrap();
    assert_eq!(old["tools"][0]["name"], "look");
    assert!(old.get("tool_choice").is_none());
    // Where there is no word for `none`, what is not declared is not called.
    let none = plain()
        .with_tools([tool("look")])
        .with_tool_choice(ToolChoice::None);
    let old = try_body("kimi", Conflicts::Refuse, &hello(), &none).unwrap();
    assert!(old.get("tools").is_none() && old.get("tool_choice").is_none());
    assert_eq!(body(&hello(), &none)["tool_choice"]["type"], "none");
}

#[test]
fn tools_of_the_server_come_first_and_choices_have_their_forms() {
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let own = AnthropicRunOptions::new().with_server_tools([search.clone()]);
    let options = plain()
        .with_tools([tool("look.here")])
        .with_anthropic(own)
        .with_tool_choice(ToolChoice::Named("look.here".to_owned()))
        .with_parallel_tool_calls(false);
    let sent = body(&hello(), &options);
    assert_eq!(sent["tools"][0], search);
    let name = sent["tools"][1]["name"].as_str().unwrap();
    assert!(name.starts_with("look_here_"), "{name}");
    let wanted = json!({"type": "tool", "name": name, "disable_parallel_tool_use": true});
    assert_eq!(sent["tool_choice"], wanted);
}

#[test]
fn a_conversation_that_ends_with_the_assistant_is_gone_on_with() {
    let messages = [
        ChatMessage::user("Hi"),
        ChatMessage::assistant("Once upon \n"),
    ];
    let sent = body(&messages, &plain());
    assert_eq!(sent["messages"][1]["content"][0]["text"], "Once upon");
    for (options, why) in [
        (plain().with_model("claude-opus-4-6"), "no prefill"),
        (thinking(Thinking::Budget(2048)), "it thinks"),
    ] {
        let sent = body(&messages, &options);
        assert_eq!(sent["messages"][1]["content"][0]["text"], "Once upon \n");
        assert_eq!(
            sent["messages"][2]["content"][0]["text"], "Continue.",
            "{why}"
        );
    }
}

#[test]
fn schemas_of_answers_go_where_the_server_takes_them() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = JsonSchemaFormat::new("answer", &schema);
    let options = plain().with_response_format(ResponseFormat::JsonSchema(format));
    let sent = body(&hello(), &options);
    let told = sent["system"][0]["text"].as_str().unwrap();
    assert!(told.contains(&schema.to_string()));
    let dialect = Dialect::named("anthropic").unwrap();
    let dialect = dialect.with_schema_support(SchemaSupport::OutputConfig);
    let client = AnthropicOptions::new()
        .with_model("m")
        .with_dialect(dialect);
    let client = AnthropicChatClient::new(client).unwrap();
    let sent = client.request_body(&hello(), &options).unwrap();
    let sent: Value = serde_json::from_str(&sent).unwrap();
    let wanted = json!({"format": {"type": "json_schema", "schema": schema}});
    assert_eq!(sent["output_config"], wanted);
    assert!(sent.get("system").is_none());
}

#[test]
fn extra_fields_are_laid_over_and_a_thinking_of_their_own_counts() {
    let options = plain()
        .with_extra_body(
            "thinking",
            json!({"type": "enabled", "budget_tokens": 1024}),
        )
        .with_extra_body("metadata", json!({"user_id": "u"}))
        .with_temperature(0.2);
    let error = try_body("anthropic", Conflicts::Refuse, &hello(), &options).unwrap_err();
    assert!(error.message().contains("temperature"));
    let sent = try_body("anthropic", Conflicts::Adapt, &hello(), &options).unwrap();
    assert_eq!(sent["thinking"]["budget_tokens"], 1024);
    assert_eq!(sent["metadata"]["user_id"], "u");
    assert!(sent.get("temperature").is_none());
}

/// A7: the prefix of each request is the previous request, byte for byte.
#[test]
fn a_longer_conversation_begins_as_the_shorter_did() {
    let mut messages = vec![ChatMessage::system("Be kind.")];
    messages.extend(called());
    let options = plain().with_tools([tool("look")]);
    let shorter = body_text(&messages, &options);
    messages.push(ChatMessage::assistant("I saw."));
    messages.push(ChatMessage::user("Well?"));
    let longer = body_text(&messages, &options);
    let turns = |body: &str| {
        let start = body.find(r#""messages":["#).unwrap();
        let end = body.rfind(r#"],"tools":"#).unwrap();
        body[start..end].to_owned()
    };
    assert!(turns(&longer).starts_with(&turns(&shorter)));
    assert!(turns(&shorter).contains(r#""input":{"b":1,"a":2}"#));
}
