//! Pieces that are measured by themselves.

use std::sync::LazyLock;

use raf_core::{AgentResponseUpdate, ChatClientRunOptions, ChatMessage, ResponseFold};
use raf_openai::{OpenAiChatClient, OpenAiOptions};
use raf_tools::CompiledSchema;
use raf_wire::{CallAssembler, CallPiece, EventDecoder, EventSink, JsonScanner, Limits};
use serde_json::Value;

/// A conversation of so many messages of 500 characters.
pub fn history(count: u32) -> Vec<ChatMessage> {
    let text = "All work and no play. ".repeat(23);
    let message = |number: u32| match number % 2 {
        0 => ChatMessage::user(text.as_str()),
        _ => ChatMessage::assistant(text.as_str()),
    };
    (0..count).map(message).collect()
}

/// A client that writes requests, made once: it never sends one, and reading the certificates that it
/// would trust costs more than most of what is measured.
pub fn request_client() -> OpenAiChatClient {
    static CLIENT: LazyLock<OpenAiChatClient> = LazyLock::new(new_request_client);
    CLIENT.clone()
}

fn new_request_client() -> OpenAiChatClient {
    let options = OpenAiOptions::new()
        .with_api_key("none")
        .with_base_url("http://localhost:1/v1")
        .with_model("model");
    OpenAiChatClient::new(options).expect("options that can be used")
}

/// Writes the body of a request.
pub fn request_body(client: &OpenAiChatClient, messages: &[ChatMessage]) -> usize {
    let body = client.request_body(messages, &ChatClientRunOptions::new());
    body.expect("a request that is right").len()
}

/// Puts one call together from so many fragments of its argument text, and folds what is said of it.
pub fn arguments(fragments: u32) {
    let mut assembler = CallAssembler::new(&Limits::default());
    let mut fold = ResponseFold::new();
    let mut updates = Vec::new();
    let last = fragments - 1;
    for number in 0..fragments {
        assembler.begin_array();
        let arguments = match number {
            0 => r#"{"text":"twenty bytes or so, "#,
            number if number == last => r#"the end"}"#,
            _ => "twenty bytes or so, ",
        };
        let piece = CallPiece {
            index: Some(0),
            id: if number == 0 { "call_1" } else { "" },
            name: if number == 0 { "write" } else { "" },
            arguments: arguments.into(),
            extra: None,
        };
        assembler
            .push(piece, &mut updates)
            .expect("within the limits");
        updates.drain(..).for_each(|update| fold.push(&update));
    }
    assert!(assembler.finish(false, "none", &mut updates));
    updates.drain(..).for_each(|update| fold.push(&update));
    fold.push(&AgentResponseUpdate::message_end());
    assert_eq!(fold.messages().len(), 1);
}

/// Folds a reply of so many deltas.
pub fn fold(deltas: u32) -> usize {
    let mut fold = ResponseFold::new();
    fold.push(&AgentResponseUpdate::assistant_start());
    let delta = AgentResponseUpdate::text("some words ");
    (0..deltas).for_each(|_| fold.push(&delta));
    fold.push(&AgentResponseUpdate::message_end());
    fold.messages()[0].text().len()
}

/// Cuts a body into events and passes over the JSON of each; returns how many there were.
pub fn events(body: &[u8], read: usize) -> u32 {
    struct Count(u32);
    impl EventSink for Count {
        fn line(&mut self, _: &[u8], data: &[u8]) -> raf_core::Result<bool> {
            let text = std::str::from_utf8(data).unwrap_or_default();
            let mut scanner = JsonScanner::new(text);
            let is_whole = scanner.skip().is_some() && scanner.is_at_end();
            self.0 += u32::from(is_whole);
            Ok(is_whole)
        }

        fn event(&mut self, _: &[u8], _: &[u8]) -> raf_core::Result<()> {
            Ok(())
        }
    }
    let mut decoder = EventDecoder::new(&Limits::default());
    let mut count = Count(0);
    for read in body.chunks(read) {
        decoder.push(read, &mut count).expect("within the limits");
    }
    count.0
}

/// Checks arguments against a schema.
pub fn validate(schema: &CompiledSchema, arguments: &Value) -> usize {
    schema.faults(arguments).len()
}
