//! Places of messages, schemas of answers, and what stays the same.

use raf_anthropic::{AnthropicChatClient, AnthropicOptions, Dialect, SchemaSupport, Thinking};
use raf_core::{ChatMessage, JsonSchemaFormat, ResponseFormat};
use serde_json::{Value, json};

use super::{body, body_text, called, hello, plain, thinking, tool};

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
