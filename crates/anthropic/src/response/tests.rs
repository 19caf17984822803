//! The reading under events in any order: those of all wire cases, left out, repeated, mixed. No panic, the
//! same in every cut, lawful updates; and the fast reading says what the loose one says.
//!
//! `PROPTEST_CASES=100000 cargo test --release -p raf-anthropic --lib mixed` runs it for a while.

use std::path::Path;
use std::sync::OnceLock;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use raf_core::{AgentResponseUpdate, Content};
use raf_testing::invariants::check_reply_updates;
use raf_wire::{Decoder, Json, Limits, Reporter, WireReply};
use serde_json::Value;

use super::Reply;
use crate::endpoint::MESSAGES;
use crate::wire::delta::{DeltaEvent, Surroundings};
use crate::wire::loose;

fn reply(limits: &Limits) -> Reply {
    let reporter = Reporter::new(&MESSAGES, "server", "m", Vec::new(), Bytes::new());
    Reply::new("anthropic", "m", reporter, limits, 0)
}

/// The events of all streams among the wire cases, as they were written.
fn events() -> &'static [String] {
    static EVENTS: OnceLock<Vec<String>> = OnceLock::new();
    EVENTS.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/cases");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        files.sort();
        let mut events: Vec<String> = Vec::new();
        for file in files {
            let case: Value =
                serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
            let reads = case["input"].as_array().into_iter().flatten();
            events.extend(reads.filter_map(Value::as_str).map(str::to_owned));
        }
        events.sort();
        events.dedup();
        events
    })
}

type Item = raf_core::Result<AgentResponseUpdate>;

/// What comes of a body.
fn read(body: &[u8], cut: usize, limits: &Limits) -> Vec<Item> {
    let mut reply = reply(limits);
    let mut decoder = Decoder::new(limits);
    let mut end = Ok(());
    for piece in body.chunks(cut) {
        end = decoder.push(piece, &mut reply).map(|_| ());
        if end.is_err() || reply.is_done() {
            break;
        }
    }
    if end.is_ok() && !reply.is_done() {
        end = decoder.finish(&mut reply);
    }
    let end = end.and_then(|()| reply.conclude());
    if end.is_err() {
        reply.abandon();
    }
    let mut items: Vec<Item> = reply.updates().drain(..).map(Ok).collect();
    items.push(end.map(AgentResponseUpdate::finish));
    items
}

/// An item as text; ids that were made up are left out, and so is what may be cut otherwise.
fn said(item: &Item) -> String {
    match item {
        Ok(AgentResponseUpdate::ToolCallEnd { position, call }) => {
            let id = Some(call.id()).filter(|id| id.len() != 17);
            format!("{position} {id:?} {} {}", call.name(), call.arguments())
        }
        Ok(update) => format!("{update:?}"),
        Err(error) => error.to_string(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mixed_events_are_read_alike_in_every_cut_and_lawfully(
        picked in prop::collection::vec(any::<Index>(), 1..14),
        begins in any::<bool>(),
        ends in any::<bool>(),
    ) {
        let mut body = String::new();
        if begins {
            body.push_str("data: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\"}}\n\n");
        }
        for index in picked {
            body.push_str(&events()[index.index(events().len())]);
        }
        if ends {
            body.push_str("data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\n");
        }
        let limits = Limits::default();
        let whole = read(body.as_bytes(), usize::MAX, &limits);
        let words: Vec<String> = whole.iter().map(said).collect();
        for cut in [1, 7] {
            let again: Vec<String> = read(body.as_bytes(), cut, &limits).iter().map(said).collect();
            prop_assert_eq!(&again, &words, "{}", body);
        }
        let found = check_reply_updates(&whole);
        prop_assert!(found.is_empty(), "{found:?}\n{body}\n{words:#?}");
        let is_empty = |item: &Item| match item {
            Ok(AgentResponseUpdate::TextDelta { text } | AgentResponseUpdate::ReasoningDelta { text }) => text.is_empty(),
            Ok(AgentResponseUpdate::Content { content }) => matches!(&**content, Content::ToolCall(_)),
            _ => false,
        };
        prop_assert!(!whole.iter().any(is_empty), "{words:#?}");
    }
}

/// What a reply says to the data lines of a body, each of them an event: by the quick readings where they
/// take them, or all of them loosely. And how many were read quickly.
fn said_to_lines(body: &str, is_quick: bool) -> (Vec<String>, usize) {
    let mut reply = reply(&Limits::default());
    let (mut end, mut quick) = (Ok(()), 0);
    for line in body.lines().filter_map(|line| line.strip_prefix("data:")) {
        let is_read = if is_quick {
            reply.line(b"", line)
        } else {
            Ok(false)
        };
        end = is_read.and_then(|is_read| match Json::parse_repaired(line) {
            _ if is_read => {
                quick += 1;
                Ok(())
            }
            Ok(event) if event.is_object() => reply.frame("", &event),
            _ => Ok(()),
        });
        if end.is_err() || reply.is_done() {
            break;
        }
    }
    let end = end.and_then(|()| reply.conclude());
    let mut words: Vec<String> = reply
        .updates()
        .drain(..)
        .map(|update| said(&Ok(update)))
        .collect();
    words.push(end.map_or_else(|error| error.to_string(), |finish| format!("{finish:?}")));
    (words, quick)
}

/// How a plain event may be changed: what it says, which members it has and of what kind they are.
const CHANGES: &[(&str, &str)] = &[
    (":0", ":7"),
    (":0", ":1.0"),
    (":1", ":\"1\""),
    (":null", ":{}"),
    (":null", ":\"x\""),
    ("{}", "{\"a\":1}"),
    ("[]", "[{\"type\":\"text\",\"text\":\"a\"}]"),
    ("\"\"", "\"\\u0041\\n\""),
    ("\"index\":", "\"place\":"),
    ("\"type\":", "\"index\":2,\"type\":"),
    ("\"id\":", "\"id\":\"one\",\"id\":"),
    (
        "\"usage\":{",
        "\"usage\":{\"output_tokens\":9,\"server_tool_use\":{\"a\":2},",
    ),
    (
        "\"usage\":{",
        "\"context_management\":{\"edits\":[1]},\"usage\":{",
    ),
    (
        "\"stop_reason\":",
        "\"stop_sequence\":\"END\",\"stop_reason\":",
    ),
    ("\"delta\":{", "\"error\":{\"message\":\"no\"},\"delta\":{"),
    (
        "\"type\":\"tool_use\"",
        "\"caller\":{\"type\":\"direct\"},\"type\":\"tool_use\"",
    ),
    ("}", "} "),
    ("}", ""),
];

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_reply_that_is_read_quickly_is_the_one_that_is_read_loosely(
        picked in prop::collection::vec((any::<Index>(), any::<Option<(Index, Index)>>()), 1..14),
    ) {
        let mut body = String::new();
        for (index, change) in picked {
            let event = &events()[index.index(events().len())];
            let (from, to) = change.map_or(("", ""), |(of, _)| CHANGES[of.index(CHANGES.len())]);
            let places: Vec<usize> = match from {
                "" => Vec::new(),
                from => event.match_indices(from).map(|(at, _)| at).collect(),
            };
            match change {
                Some((_, at)) if !places.is_empty() => {
                    let at = places[at.index(places.len())];
                    body.push_str(&event[..at]);
                    body.push_str(to);
                    body.push_str(&event[at + from.len()..]);
                }
                _ => body.push_str(event),
            }
        }
        let (quick, loose) = (said_to_lines(&body, true), said_to_lines(&body, false));
        prop_assert_eq!(quick.0, loose.0, "{}", body);
    }
}

/// How many events of the cases are read quickly: that is there for the plain ones.
#[test]
fn plain_events_are_read_quickly() {
    let (mut all, mut quick) = (0, 0);
    for event in events() {
        for line in event.lines().filter_map(|line| line.strip_prefix("data:")) {
            all += 1;
            quick += said_to_lines(&format!("data:{line}"), true).1;
        }
    }
    assert!(quick * 2 > all, "{quick} of {all}");
}

#[test]
fn the_fast_reading_says_what_the_loose_one_says() {
    let mut read = 0;
    let mut surroundings = Surroundings::default();
    for event in events() {
        for line in event.lines().filter_map(|line| line.strip_prefix("data:")) {
            // By itself, and behind another of which it may have the surroundings.
            let delta = DeltaEvent::parse(line, &mut Surroundings::default());
            assert_eq!(DeltaEvent::parse(line, &mut surroundings), delta, "{line}");
            let Some(delta) = delta else {
                continue;
            };
            read += 1;
            let limits = Limits::default();
            let (mut fast, mut loose) = (reply(&limits), reply(&limits));
            delta.apply(&mut fast).unwrap();
            loose::apply("", &Json::parse(line).unwrap(), &mut loose).unwrap();
            assert_eq!(fast.updates(), loose.updates(), "{line}");
        }
    }
    assert!(read > 20, "{read}");
}
