//! What a conversation has beyond a journal: a row for each way in which they part.

use raf_core::{
    ChatMessage, MessageRole, MessageSource, Occurrence, ToolCall, ToolOutcome, ToolResult,
};

use super::{Beyond, Compared, beyond, compare};

fn user(text: &str) -> ChatMessage {
    ChatMessage::user(text)
}

fn mail(text: &str) -> ChatMessage {
    let message = ChatMessage::user(text).to_builder();
    message.source(MessageSource::Inbox).build()
}

fn reply(text: &str) -> ChatMessage {
    ChatMessage::assistant(text)
}

fn asks() -> ChatMessage {
    let call = ToolCall::new("c", "pay", "{}");
    ChatMessage::builder(MessageRole::Assistant)
        .content(call)
        .build()
}

fn result(text: &str) -> ChatMessage {
    let result = ToolResult::builder("c", ToolOutcome::Ok)
        .name("pay")
        .text(text);
    ChatMessage::tool(result.occurrence(Occurrence::new(0, 0)).build())
}

/// The journal of a run behind its first round.
fn journal() -> Vec<ChatMessage> {
    vec![user("Pay."), asks(), result("paid")]
}

fn behind(new: &[ChatMessage]) -> Vec<ChatMessage> {
    [journal(), new.to_vec()].concat()
}

#[test]
fn what_stands_behind_the_journal_says_what_became_of_the_conversation() {
    let of_run = [reply("Done."), mail("Hurry.")];
    let moved_on = [reply("Done."), user("And?")];
    let rows = [
        ("nothing", behind(&[]), Beyond::Nothing),
        ("a message", behind(&[user("And?")]), Beyond::Message),
        ("mail", behind(&[mail("Hurry.")]), Beyond::Nothing),
        (
            "a reply",
            behind(&[reply("Done.")]),
            Beyond::Reply(vec![reply("Done.")]),
        ),
        (
            "a reply and mail",
            behind(&of_run),
            Beyond::Reply(of_run.to_vec()),
        ),
        (
            "a reply and a message",
            behind(&moved_on),
            Beyond::MovedOn(moved_on.to_vec()),
        ),
        (
            "a message and the reply of another run",
            behind(&[user("And?"), reply("Done.")]),
            Beyond::MovedOn(Vec::new()),
        ),
        (
            "a summary in place of what came first",
            [vec![user("Before: …"), reply("ok")], journal()].concat(),
            Beyond::Nothing,
        ),
        (
            "a summary of a part of it",
            vec![reply("He pays."), asks(), result("paid"), user("And?")],
            Beyond::Message,
        ),
    ];
    for (what, input, expected) in rows {
        let Compared { shown, new, end } = compare(&journal(), &input);
        assert_eq!(shown, 3, "{what}");
        assert_eq!(beyond(&input, &new, end), expected, "{what}");
    }
}

#[test]
fn what_is_shown_ends_with_the_last_message_that_both_have() {
    let rows = [
        ("all", behind(&[]), (3, 3, 0)),
        ("its end", vec![asks(), result("paid")], (3, 2, 0)),
        ("its beginning", vec![user("Pay.")], (1, 1, 0)),
        ("another conversation", vec![user("Pay less.")], (0, 0, 1)),
        ("nothing", vec![], (0, 0, 0)),
        ("another result", vec![asks(), result("lost")], (2, 1, 1)),
    ];
    for (what, input, expected) in rows {
        let Compared { shown, new, end } = compare(&journal(), &input);
        assert_eq!((shown, end, new.len()), expected, "{what}");
    }
}
