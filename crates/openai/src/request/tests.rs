//! What a request looks like beyond the wire cases.

use std::sync::Arc;

use raf_core::{
    AgentResponseUpdate, ChatClientRunOptions, ChatMessage, Content, ErrorKind, JsonSchemaFormat,
    MediaContent, MediaSource, MessageRole, ReasoningEffort, ResponseFormat, ToolCall,
    ToolCallHead, ToolChoice, ToolDeclaration, ToolOutcome, ToolResult,
};
use raf_wire::ToolsCache;
use serde_json::{Value, json};

use super::{Built, build};
use crate::{Dialect, SchemaSupport, SystemRole};

fn built(messages: &[ChatMessage], options: &ChatClientRunOptions, dialect: &Dialect) -> Built {
    build(
        messages,
        options,
        "m",
        dialect,
        true,
        &ToolsCache::default(),
    )
    .unwrap()
}

fn text(messages: &[ChatMessage], options: &ChatClientRunOptions, dialect: &Dialect) -> String {
    String::from_utf8(built(messages, options, dialect).body.to_vec()).unwrap()
}

fn body(messages: &[ChatMessage], options: &ChatClientRunOptions, dialect: &str) -> Value {
    let dialect = Dialect::named(dialect).unwrap();
    serde_json::from_str(&text(messages, options, &dialect)).unwrap()
}

fn hello() -> Vec<ChatMessage> {
    vec![ChatMessage::user("Hello")]
}

fn tool(schema: &str) -> ToolDeclaration {
    ToolDeclaration::new("f", "does")
        .with_parameters_json(schema)
        .unwrap()
}

#[test]
fn every_option_is_sent() {
    let schema = json!({"type": "object", "properties": {}});
    let options = ChatClientRunOptions::new()
        .with_temperature(0.5)
        .with_top_p(0.25)
        .with_max_output_tokens(7)
        .with_stop(["x"])
        .with_seed(-3)
        .with_frequency_penalty(1.0)
        .with_presence_penalty(-1.0)
        .with_tools([ToolDeclaration::new("f", "does")])
        .with_tool_choice(ToolChoice::Named("f".to_owned()))
        .with_parallel_tool_calls(false)
        .with_response_format(ResponseFormat::JsonSchema(
            JsonSchemaFormat::new("answer", &schema)
                .with_description("why")
                .with_strict(false),
        ))
        .with_reasoning_effort(ReasoningEffort::Low)
        .with_extra_body("service_tier", json!("flex"));
    let wanted = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": true,
        "stream_options": {"include_usage": true},
        "temperature": 0.5,
        "top_p": 0.25,
        "frequency_penalty": 1.0,
        "presence_penalty": -1.0,
        "max_completion_tokens": 7,
        "stop": ["x"],
        "seed": -3,
        "reasoning_effort": "low",
        "tools": [{"type": "function", "function": {
            "name": "f", "description": "does", "parameters": schema,
        }}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": false,
        "response_format": {"type": "json_schema", "json_schema": {
            "name": "answer", "description": "why", "schema": schema, "strict": false,
        }},
        "service_tier": "flex",
    });
    assert_eq!(body(&hello(), &options, "openai"), wanted);
}

#[test]
fn nothing_that_is_unset_is_sent() {
    let bare = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "Hello"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(
        body(&hello(), &ChatClientRunOptions::new(), "compatible"),
        bare
    );
}

#[test]
fn the_extra_body_is_laid_over() {
    let options = ChatClientRunOptions::new()
        .with_temperature(0.5)
        .with_extra_body("temperature", json!(0))
        .with_extra_body("stream_options", json!(null));
    let body = text(&hello(), &options, &Dialect::compatible());
    assert_eq!(body.matches("temperature").count(), 1);
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["temperature"], 0);
    assert_eq!(body["stream_options"], Value::Null);
}

#[test]
fn the_properties_of_a_schema_keep_their_order() {
    let schema = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"integer"}},"required":["z"]}"#;
    let plain = ChatClientRunOptions::new().with_tools([tool(schema)]);
    assert!(text(&hello(), &plain, &Dialect::compatible()).contains(schema));
    let strict = ChatClientRunOptions::new().with_tools([tool(schema).with_strict(true)]);
    assert!(text(&hello(), &strict, &Dialect::compatible()).contains(
        r#""properties":{"z":{"type":"string"},"a":{"type":["integer","null"]}},"required":["z","a"],"additionalProperties":false"#
    ));
    let gemini = Dialect::named("gemini").unwrap();
    assert!(text(&hello(), &plain, &gemini).contains(r#"{"z":{"type":"string"},"a":"#));
}

#[test]
fn a_message_is_rendered_once_per_dialect() {
    let messages = hello();
    let dialect = Dialect::compatible();
    built(&messages, &ChatClientRunOptions::new(), &dialect);
    let kept = messages[0].rendered(dialect.render_key, |_| panic!("it is kept"));
    let shared = messages[0]
        .clone()
        .rendered(Dialect::compatible().render_key, |_| panic!("kept"));
    assert!(Arc::ptr_eq(&kept, &shared));
}

#[test]
fn names_and_optional_arguments_come_back_as_the_caller_knows_them() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":["string","null"]}},"required":["a"]}"#;
    let declaration = tool(schema).with_strict(true).with_name("files.read");
    let options = ChatClientRunOptions::new().with_tools([declaration]);
    let built = built(&hello(), &options, &Dialect::compatible());
    let sent: Value = serde_json::from_slice(&built.body).unwrap();
    let name = sent["tools"][0]["function"]["name"].as_str().unwrap();
    assert!(name.starts_with("files_read_"));
    let start = built.restore.update(AgentResponseUpdate::ToolCallStart {
        position: 0,
        call: Box::new(ToolCallHead::new("1", name)),
    });
    let AgentResponseUpdate::ToolCallStart { call, .. } = start else {
        panic!()
    };
    assert_eq!(call.name, "files.read");
    let end = built.restore.update(AgentResponseUpdate::ToolCallEnd {
        position: 0,
        call: ToolCall::new("1", name, r#"{"b":null,"a":"x","c":null}"#),
    });
    let AgentResponseUpdate::ToolCallEnd { call, .. } = end else {
        panic!()
    };
    assert_eq!(call.name(), "files.read");
    assert_eq!(call.arguments(), r#"{"a":"x","c":null}"#);
}

#[test]
fn a_schema_without_a_strict_form_is_sent_as_it_is() {
    let schema = r#"{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"}}}}"#;
    let options = ChatClientRunOptions::new().with_tools([tool(schema).with_strict(true)]);
    let body = text(&hello(), &options, &Dialect::compatible());
    assert!(
        body.contains(schema) && body.contains(r#""strict":false"#),
        "{body}"
    );
}

#[test]
fn references_and_variants_are_lowered_for_gemini() {
    let schema = json!({
        "type": "object",
        "properties": {
            "unit": {"$ref": "#/$defs/Unit", "description": "which"},
            "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
            "count": {"type": ["integer", "null"], "exclusiveMinimum": 0, "default": 1},
            "node": {"$ref": "#"},
        },
        "$defs": {"Unit": {"type": "string", "enum": ["c", "f"]}},
    });
    let options = ChatClientRunOptions::new().with_tools([tool(&schema.to_string())]);
    let sent = body(&hello(), &options, "gemini")["tools"][0]["function"]["parameters"].clone();
    let properties = &sent["properties"];
    assert_eq!(
        properties["unit"],
        json!({"type": "string", "enum": ["c", "f"], "description": "which"})
    );
    assert_eq!(
        properties["when"],
        json!({"type": "string", "format": "date-time", "nullable": true})
    );
    assert_eq!(
        properties["count"],
        json!({"type": "integer", "nullable": true})
    );
    let none = ChatClientRunOptions::new().with_tools([ToolDeclaration::new("f", "does")]);
    let function = &body(&hello(), &none, "gemini")["tools"][0]["function"];
    assert!(function.get("parameters").is_none());
}

#[test]
fn what_is_wrong_by_itself_is_refused() {
    let refuse = |messages: &[ChatMessage], options: ChatClientRunOptions| {
        let cache = ToolsCache::default();
        let built = build(
            messages,
            &options,
            "m",
            &Dialect::compatible(),
            true,
            &cache,
        );
        built.err().unwrap()
    };
    let two = [
        tool("{}"),
        tool(r#"{"type":"object","properties":{"a":{}}}"#),
    ];
    let error = refuse(&hello(), ChatClientRunOptions::new().with_tools(two));
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("'f'"), "{error}");
    let forced = ChatClientRunOptions::new().with_tool_choice(ToolChoice::Required);
    assert_eq!(refuse(&hello(), forced).kind(), ErrorKind::Misuse);
    let nan = ChatClientRunOptions::new().with_temperature(f64::NAN);
    assert!(refuse(&hello(), nan).message().contains("temperature"));
    let audio = MediaContent::url("https://example.com/a.wav");
    let audio = ChatMessage::new(MessageRole::User, [Content::Audio(audio)]);
    assert!(
        refuse(&[audio], ChatClientRunOptions::new())
            .message()
            .contains("base64")
    );
}

#[test]
fn media_have_their_forms() {
    let message = ChatMessage::builder(MessageRole::User)
        .content("Look")
        .content(Content::Image(MediaContent::base64("AA==", "image/png")))
        .content(Content::Audio(MediaContent::base64("AA==", "audio/mpeg")))
        .content(Content::File(MediaContent::new(MediaSource::FileId(
            "file-1".to_owned(),
        ))))
        .content(Content::Video(MediaContent::url(
            "https://example.com/v.mp4",
        )))
        .build();
    let sent = body(&[message], &ChatClientRunOptions::new(), "openai");
    let wanted = json!([
        {"type": "text", "text": "Look"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        {"type": "input_audio", "input_audio": {"data": "AA==", "format": "mp3"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "video_url", "video_url": {"url": "https://example.com/v.mp4"}},
    ]);
    assert_eq!(sent["messages"][0]["content"], wanted);
}

#[test]
fn images_of_tool_results_follow_in_a_message_of_their_own() {
    let result = ToolResult::builder("call_1", ToolOutcome::Ok)
        .name("camera")
        .content(vec![Content::Image(MediaContent::base64(
            "AA==",
            "image/png",
        ))])
        .build();
    let messages = [
        ChatMessage::user("Look"),
        ChatMessage::assistant_calls([ToolCall::new("call_1", "camera", "{}")]),
        ChatMessage::tool(result),
    ];
    let sent = body(&messages, &ChatClientRunOptions::new(), "openai");
    assert!(
        sent["messages"][2]["content"]
            .as_str()
            .unwrap()
            .contains("follows")
    );
    assert_eq!(sent["messages"][3]["role"], "user");
    assert_eq!(sent["messages"][3]["content"][1]["type"], "image_url");
}

#[test]
fn instructions_go_where_the_server_takes_them() {
    let messages = [
        ChatMessage::system("Be kind."),
        ChatMessage::new(MessageRole::Developer, [Content::text("Be short.")]),
        ChatMessage::user("Hello"),
    ];
    let roles = |dialect: Dialect| -> Vec<String> {
        let options = ChatClientRunOptions::new();
        let sent: Value = serde_json::from_str(&text(&messages, &options, &dialect)).unwrap();
        let messages = sent["messages"].as_array().unwrap().iter();
        messages
            .map(|message| format!("{} {}", message["role"], message["content"]).replace('"', ""))
            .collect()
    };
    let openai = Dialect::named("openai").unwrap();
    assert_eq!(
        roles(openai),
        ["system Be kind.", "developer Be short.", "user Hello"]
    );
    assert_eq!(
        roles(Dialect::named("mistral").unwrap()),
        [r"system Be kind.\n\nBe short.", "user Hello"]
    );
    let gemma = Dialect::compatible().with_system_role(SystemRole::None);
    assert_eq!(roles(gemma), [r"user Be kind.\n\nBe short.\n\nHello"]);
}

#[test]
fn a_schema_of_the_answer_goes_to_the_instructions_where_the_wire_has_no_place() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = JsonSchemaFormat::new("answer", &schema);
    let options =
        ChatClientRunOptions::new().with_response_format(ResponseFormat::JsonSchema(format));
    let sent = body(&hello(), &options, "deepseek");
    assert_eq!(sent["response_format"], json!({"type": "json_object"}));
    assert!(
        sent["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains(&schema.to_string())
    );
    let bare = Dialect::compatible().with_schema_support(SchemaSupport::Instructions);
    assert!(!text(&hello(), &options, &bare).contains("response_format"));
    let object = ChatClientRunOptions::new().with_response_format(ResponseFormat::JsonObject);
    let sent = body(&hello(), &object, "openai");
    assert!(
        sent["messages"][0]["content"]
            .as_str()
            .unwrap()
            .contains("JSON")
    );
}
