//! Parts of messages that not every protocol has a form for.

use raf_core::{
    ChatClientRunOptions, ChatMessage, Content, ErrorKind, MediaContent, MessageRole, Result,
    ToolCall, ToolOutcome, ToolResult,
};
use raf_openai::{
    Dialect, OpenAiChatClient, OpenAiOptions, OpenAiResponsesChatClient, ResponsesDialect,
    mcp_approval_response,
};
use raf_wire::{Json, provider_part};
use serde_json::{Value, json};

fn options() -> OpenAiOptions {
    OpenAiOptions::new()
        .with_model("m")
        .with_dialect(Dialect::named("openai").expect("it is known"))
        .with_responses_dialect(ResponsesDialect::openai())
}

fn chat(messages: &[ChatMessage]) -> Result<String> {
    OpenAiChatClient::new(options())?.request_body(messages, &ChatClientRunOptions::new())
}

fn responses(messages: &[ChatMessage]) -> Result<String> {
    OpenAiResponsesChatClient::new(options())?.request_body(messages, &ChatClientRunOptions::new())
}

type Written = fn(&[ChatMessage]) -> Result<String>;

const SOUND: &str = "https://example.com/a.wav";

/// What a protocol has no form for: who writes, the part, what is to be given instead, and the note that
/// stands for it in a result.
fn without_form() -> [(Written, Content, &'static str, &'static str); 4] {
    let sound = Content::Audio(MediaContent::url(SOUND));
    let video = Content::Video(MediaContent::url("https://example.com/v.mp4"));
    let file = Content::File(MediaContent::url("https://example.com/a.pdf"));
    [
        (
            chat,
            sound.clone(),
            "base64",
            "sound that this endpoint cannot fetch",
        ),
        (
            chat,
            file,
            "the id of an uploaded file",
            "a file that this endpoint cannot fetch",
        ),
        (
            responses,
            sound,
            "base64",
            "sound that this endpoint cannot fetch",
        ),
        (
            responses,
            video,
            "give single images",
            "a video that this endpoint cannot take",
        ),
    ]
}

#[test]
fn media_of_the_user_without_a_form_are_refused_with_what_to_give() {
    for (written, part, instead, _) in without_form() {
        let error = written(&[ChatMessage::new(MessageRole::User, [part])]).expect_err(instead);
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains(instead), "{error}");
    }
}

/// The tool has run: the run goes on.
#[test]
fn media_of_a_result_without_a_form_become_a_note() {
    for (written, part, _, note) in without_form() {
        let call = Content::ToolCall(ToolCall::new("c1", "f", "{}"));
        let result = ToolResult::builder("c1", ToolOutcome::Ok).content(vec![part]);
        let messages = [
            ChatMessage::user("go"),
            ChatMessage::new(MessageRole::Assistant, [call]),
            ChatMessage::tool(result.build()),
        ];
        let body = written(&messages).expect(note);
        assert!(body.contains(note), "{body}");
    }
}

/// A conversation that began with a model that makes media goes on with one that takes none.
#[test]
fn media_that_a_model_made_are_left_out() {
    for (written, part, ..) in without_form() {
        let reply = ChatMessage::new(MessageRole::Assistant, [Content::text("Here."), part]);
        let body = written(&[ChatMessage::user("go"), reply, ChatMessage::user("Thanks.")]);
        let body = body.expect("nothing of the user's is refused");
        assert!(
            body.contains("Here.") && !body.contains("example.com"),
            "{body}"
        );
    }
}

#[test]
fn an_approval_that_the_server_asked_for_is_answered_behind_its_request() {
    let request = json!({
        "type": "mcp_approval_request", "id": "mcpr_1", "server_label": "docs",
        "name": "search", "arguments": "{}",
    });
    let reply = ChatMessage::new(
        MessageRole::Assistant,
        [provider_part("openai", &Json::from(&request))],
    );
    for approve in [true, false] {
        let answer = mcp_approval_response("mcpr_1", approve);
        let messages = [
            ChatMessage::user("Search."),
            reply.clone(),
            ChatMessage::new(MessageRole::User, [answer]),
        ];
        let body: Value =
            serde_json::from_str(&responses(&messages).expect("a body")).expect("JSON");
        let items = body["input"].as_array().expect("a list");
        let answer = json!({
            "type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": approve,
        });
        assert_eq!(items[1..], [request.clone(), answer]);
    }
}
