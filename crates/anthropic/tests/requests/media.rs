//! Media of the user and of results.

use raf_anthropic::Conflicts;
use raf_core::{
    ChatMessage, Content, ErrorKind, MediaContent, MediaSource, MessageRole, ToolErrorClass,
    ToolOutcome, ToolResult,
};
use serde_json::json;

use super::{body, called, plain, try_body};

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
