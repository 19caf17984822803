//! Where breakpoints of the prompt cache stand.

use raf_anthropic::{CacheLifetime, Conflicts, PromptCaching};
use raf_core::{ChatMessage, Content, ErrorKind, MessageRole, TextContent};
use serde_json::{Value, json};

use super::{body, body_text, caching, called, plain, tool, try_body};

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
    let error = try_body("anthropic", Conflicts::Refuse, &many(5), &automatic).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.message().contains("more than four"), "{error}");
    let mut messages = many(3);
    messages.push(ChatMessage::assistant("a"));
    messages.extend(many(3).split_off(1));
    for (messages, kept) in [(many(5), 4), (messages, 4)] {
        let body = try_body("anthropic", Conflicts::Adapt, &messages, &automatic).unwrap();
        assert!(lifetimes(&body).len() <= kept);
        let last = body["messages"].as_array().unwrap().last().unwrap()["content"].clone();
        let last = last.as_array().unwrap().last().unwrap().clone();
        assert!(last["cache_control"].is_object(), "{body}");
    }
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
